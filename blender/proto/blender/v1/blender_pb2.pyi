from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Source(_message.Message):
    __slots__ = ("table", "name", "snapshot", "branch", "tag", "weight", "oversample", "shuffle", "columns", "content", "page_rows", "window_pages", "live", "window_rows", "validation")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    OVERSAMPLE_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    PAGE_ROWS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_PAGES_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_ROWS_FIELD_NUMBER: _ClassVar[int]
    VALIDATION_FIELD_NUMBER: _ClassVar[int]
    table: str
    name: str
    snapshot: int
    branch: str
    tag: str
    weight: int
    oversample: bool
    shuffle: str
    columns: _containers.RepeatedScalarFieldContainer[str]
    content: str
    page_rows: int
    window_pages: int
    live: bool
    window_rows: int
    validation: bool
    def __init__(self, table: _Optional[str] = ..., name: _Optional[str] = ..., snapshot: _Optional[int] = ..., branch: _Optional[str] = ..., tag: _Optional[str] = ..., weight: _Optional[int] = ..., oversample: _Optional[bool] = ..., shuffle: _Optional[str] = ..., columns: _Optional[_Iterable[str]] = ..., content: _Optional[str] = ..., page_rows: _Optional[int] = ..., window_pages: _Optional[int] = ..., live: _Optional[bool] = ..., window_rows: _Optional[int] = ..., validation: _Optional[bool] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("kind", "rows_per_step", "knots")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    KNOTS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    rows_per_step: int
    knots: _containers.RepeatedCompositeFieldContainer[Knot]
    def __init__(self, kind: _Optional[str] = ..., rows_per_step: _Optional[int] = ..., knots: _Optional[_Iterable[_Union[Knot, _Mapping]]] = ...) -> None: ...

class Knot(_message.Message):
    __slots__ = ("offset", "proportions")
    class ProportionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    PROPORTIONS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    proportions: _containers.ScalarMap[str, float]
    def __init__(self, offset: _Optional[int] = ..., proportions: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Blend(_message.Message):
    __slots__ = ("id", "sources", "seed", "parent", "offset", "retired", "schedule", "pad")
    ID_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    id: str
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    seed: int
    parent: str
    offset: int
    retired: bool
    schedule: Schedule
    pad: bool
    def __init__(self, id: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., seed: _Optional[int] = ..., parent: _Optional[str] = ..., offset: _Optional[int] = ..., retired: _Optional[bool] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., pad: _Optional[bool] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("sources", "seed", "schedule", "pad")
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    sources: _containers.RepeatedCompositeFieldContainer[Source]
    seed: int
    schedule: Schedule
    pad: bool
    def __init__(self, sources: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., seed: _Optional[int] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., pad: _Optional[bool] = ...) -> None: ...

class UpdateRequest(_message.Message):
    __slots__ = ("parent", "offset", "weights", "add", "schedule", "pad")
    class WeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PARENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ADD_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    parent: str
    offset: int
    weights: _containers.ScalarMap[str, int]
    add: _containers.RepeatedCompositeFieldContainer[Source]
    schedule: Schedule
    pad: bool
    def __init__(self, parent: _Optional[str] = ..., offset: _Optional[int] = ..., weights: _Optional[_Mapping[str, int]] = ..., add: _Optional[_Iterable[_Union[Source, _Mapping]]] = ..., schedule: _Optional[_Union[Schedule, _Mapping]] = ..., pad: _Optional[bool] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("with_retired", "page_size", "page_token")
    WITH_RETIRED_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    with_retired: bool
    page_size: int
    page_token: str
    def __init__(self, with_retired: _Optional[bool] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("blends", "next_page_token")
    BLENDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    blends: _containers.RepeatedCompositeFieldContainer[Blend]
    next_page_token: str
    def __init__(self, blends: _Optional[_Iterable[_Union[Blend, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RetireRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("blend", "offset", "steps", "rank", "ranks", "stride")
    BLEND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    STRIDE_FIELD_NUMBER: _ClassVar[int]
    blend: str
    offset: int
    steps: int
    rank: int
    ranks: int
    stride: int
    def __init__(self, blend: _Optional[str] = ..., offset: _Optional[int] = ..., steps: _Optional[int] = ..., rank: _Optional[int] = ..., ranks: _Optional[int] = ..., stride: _Optional[int] = ...) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("offset", "next_offset", "payload")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    offset: int
    next_offset: int
    payload: bytes
    def __init__(self, offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., payload: _Optional[bytes] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("blend",)
    BLEND_FIELD_NUMBER: _ClassVar[int]
    blend: str
    def __init__(self, blend: _Optional[str] = ...) -> None: ...

class DescribedSource(_message.Message):
    __slots__ = ("source", "rows", "steps", "tokenizer", "tokenizer_table", "sequence_length", "tokens", "token_share", "padding", "vocabulary")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_TABLE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_SHARE_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_FIELD_NUMBER: _ClassVar[int]
    source: Source
    rows: int
    steps: int
    tokenizer: str
    tokenizer_table: str
    sequence_length: int
    tokens: int
    token_share: float
    padding: float
    vocabulary: int
    def __init__(self, source: _Optional[_Union[Source, _Mapping]] = ..., rows: _Optional[int] = ..., steps: _Optional[int] = ..., tokenizer: _Optional[str] = ..., tokenizer_table: _Optional[str] = ..., sequence_length: _Optional[int] = ..., tokens: _Optional[int] = ..., token_share: _Optional[float] = ..., padding: _Optional[float] = ..., vocabulary: _Optional[int] = ...) -> None: ...

class DescribedPiece(_message.Message):
    __slots__ = ("offset", "weights", "rows_per_step")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_PER_STEP_FIELD_NUMBER: _ClassVar[int]
    offset: int
    weights: _containers.RepeatedScalarFieldContainer[int]
    rows_per_step: int
    def __init__(self, offset: _Optional[int] = ..., weights: _Optional[_Iterable[int]] = ..., rows_per_step: _Optional[int] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("blend", "sources", "pieces", "steps", "schema", "pad", "padding")
    BLEND_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    blend: str
    sources: _containers.RepeatedCompositeFieldContainer[DescribedSource]
    pieces: _containers.RepeatedCompositeFieldContainer[DescribedPiece]
    steps: int
    schema: bytes
    pad: bool
    padding: float
    def __init__(self, blend: _Optional[str] = ..., sources: _Optional[_Iterable[_Union[DescribedSource, _Mapping]]] = ..., pieces: _Optional[_Iterable[_Union[DescribedPiece, _Mapping]]] = ..., steps: _Optional[int] = ..., schema: _Optional[bytes] = ..., pad: _Optional[bool] = ..., padding: _Optional[float] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("blend", "offset")
    BLEND_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    blend: str
    offset: int
    def __init__(self, blend: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("doc_id", "doc_offset", "length")
    DOC_ID_FIELD_NUMBER: _ClassVar[int]
    DOC_OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    doc_id: str
    doc_offset: int
    length: int
    def __init__(self, doc_id: _Optional[str] = ..., doc_offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class ExplainedRow(_message.Message):
    __slots__ = ("row", "source", "table", "ordinal", "epoch", "segments")
    ROW_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    row: int
    source: str
    table: str
    ordinal: int
    epoch: int
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    def __init__(self, row: _Optional[int] = ..., source: _Optional[str] = ..., table: _Optional[str] = ..., ordinal: _Optional[int] = ..., epoch: _Optional[int] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("offset", "rows")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    rows: _containers.RepeatedCompositeFieldContainer[ExplainedRow]
    def __init__(self, offset: _Optional[int] = ..., rows: _Optional[_Iterable[_Union[ExplainedRow, _Mapping]]] = ...) -> None: ...

class LoadRequest(_message.Message):
    __slots__ = ("spec", "offset", "steps", "rank", "stride", "last_plan", "blend")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    STRIDE_FIELD_NUMBER: _ClassVar[int]
    LAST_PLAN_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    spec: str
    offset: int
    steps: int
    rank: int
    stride: int
    last_plan: int
    blend: str
    def __init__(self, spec: _Optional[str] = ..., offset: _Optional[int] = ..., steps: _Optional[int] = ..., rank: _Optional[int] = ..., stride: _Optional[int] = ..., last_plan: _Optional[int] = ..., blend: _Optional[str] = ...) -> None: ...

class SpecRequest(_message.Message):
    __slots__ = ("offset", "blend")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    offset: int
    blend: str
    def __init__(self, offset: _Optional[int] = ..., blend: _Optional[str] = ...) -> None: ...

class SpecResponse(_message.Message):
    __slots__ = ("spec", "blend", "spec_json", "buckets", "ranks", "first_plan", "plan")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    SPEC_JSON_FIELD_NUMBER: _ClassVar[int]
    BUCKETS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    FIRST_PLAN_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    spec: str
    blend: str
    spec_json: bytes
    buckets: _containers.RepeatedScalarFieldContainer[int]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    first_plan: int
    plan: int
    def __init__(self, spec: _Optional[str] = ..., blend: _Optional[str] = ..., spec_json: _Optional[bytes] = ..., buckets: _Optional[_Iterable[int]] = ..., ranks: _Optional[_Iterable[int]] = ..., first_plan: _Optional[int] = ..., plan: _Optional[int] = ...) -> None: ...

class SummaryRequest(_message.Message):
    __slots__ = ("spec", "offset", "blend", "row")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    spec: str
    offset: int
    blend: str
    row: int
    def __init__(self, spec: _Optional[str] = ..., offset: _Optional[int] = ..., blend: _Optional[str] = ..., row: _Optional[int] = ...) -> None: ...

class SummaryResponse(_message.Message):
    __slots__ = ("blend", "sources", "rows", "pictures", "next_row")
    BLEND_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PICTURES_FIELD_NUMBER: _ClassVar[int]
    NEXT_ROW_FIELD_NUMBER: _ClassVar[int]
    blend: str
    sources: _containers.RepeatedScalarFieldContainer[str]
    rows: bytes
    pictures: bytes
    next_row: int
    def __init__(self, blend: _Optional[str] = ..., sources: _Optional[_Iterable[str]] = ..., rows: _Optional[bytes] = ..., pictures: _Optional[bytes] = ..., next_row: _Optional[int] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("spec", "offset", "blend", "bucket", "bin", "pictures", "encoder_level")
    SPEC_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    BIN_FIELD_NUMBER: _ClassVar[int]
    PICTURES_FIELD_NUMBER: _ClassVar[int]
    ENCODER_LEVEL_FIELD_NUMBER: _ClassVar[int]
    spec: str
    offset: int
    blend: str
    bucket: _containers.RepeatedScalarFieldContainer[int]
    bin: _containers.RepeatedScalarFieldContainer[int]
    pictures: PicturePlaces
    encoder_level: str
    def __init__(self, spec: _Optional[str] = ..., offset: _Optional[int] = ..., blend: _Optional[str] = ..., bucket: _Optional[_Iterable[int]] = ..., bin: _Optional[_Iterable[int]] = ..., pictures: _Optional[_Union[PicturePlaces, _Mapping]] = ..., encoder_level: _Optional[str] = ...) -> None: ...

class PicturePlaces(_message.Message):
    __slots__ = ("node", "bin")
    NODE_FIELD_NUMBER: _ClassVar[int]
    BIN_FIELD_NUMBER: _ClassVar[int]
    node: _containers.RepeatedScalarFieldContainer[int]
    bin: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, node: _Optional[_Iterable[int]] = ..., bin: _Optional[_Iterable[int]] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("plan_json",)
    PLAN_JSON_FIELD_NUMBER: _ClassVar[int]
    plan_json: bytes
    def __init__(self, plan_json: _Optional[bytes] = ...) -> None: ...
