"""The corpus of this process: the datasets of the file in FACTORY_DATASETS, or this Python installation's."""

from __future__ import annotations

from factory.orchestration.datasets.assets import corpus as declared_corpus
from factory.orchestration.datasets.corpus import Corpus
from factory.settings import Settings


def corpus(settings: Settings) -> Corpus:
    """What `settings` choose; raises ConfigurationError where the file is wrong."""
    return _installation(settings) if settings.datasets is None else declared_corpus(settings.datasets)


def _installation(settings: Settings) -> Corpus:
    from assets import models
    from assets.code import python_installation
    from assets.natural_language import python_documentation

    return Corpus(
        title=f"{settings.installation_share:.0%} of this Python installation",
        assets=(*python_installation.ASSETS, *python_documentation.ASSETS, *models.ASSETS),
        datasets=("python_code", "python_prose"),
        groups=("code", "prose"),
        weights={"python_code": 6, "python_prose": 2},
    )
