"""The environments of other readers of training data, shared by the benches that read beside them.

torch with its libraries takes 6 GB, so what needs it shares one environment.
"""

from bench.peers import Peer

TORCH = Peer("torch", ("torch==2.15.0", "mosaicml-streaming==0.13.0", "litdata==0.2.76"))
HUGGING_FACE = Peer("pages-hf", ("datasets==5.2.0",))
GRAIN = Peer("grain", ("grain==0.2.18", "array-record==0.8.6", "numpy==2.4.6"))
LANCE = Peer("pages-lance", ("pylance==14.0.2",))
