"""The models that a datasets file declares for its rules: each is a table, and a rule of its name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from factory.errors import ConfigurationError
from factory.filters.examples import Examples
from factory.filters.limits import Missing, parse_limit
from factory.filters.rounds import PlainLimit
from factory.filters.rule import Rule
from factory.filters.rules.listed_words import ListedWords
from factory.filters.rules.onnx_score import OnnxScore
from factory.filters.rules.perplexity import BitsPerByte
from factory.filters.sets import rules
from factory.frozen_model import FrozenModel
from factory.models.ngram_model import VOCABULARY
from factory.orchestration.chain.models.classifier_rule import classifier_rule
from factory.orchestration.declare.located_yaml import InvalidValue
from factory.orchestration.declare.models_tokenizers import TokenizerFields
from factory.orchestration.declare.part import Declared, Part

if TYPE_CHECKING:
    import dagster as dg

    from factory.orchestration.chain.models.rule import RuleModel


class ModelEntry(FrozenModel):
    """A model with the `limit` of its rule, where a dataset names none."""

    limit: PlainLimit | float | None = Field(
        default=None, description="limit of its rule where a dataset names none"
    )
    missing: Missing | None = Field(
        default=None, description="`keep` or `reject`: the policy for documents without a value"
    )

    @field_validator("limit", mode="before")
    @classmethod
    def _limit_is_one(cls, limit: Any) -> Any:
        if isinstance(limit, int | float) and not isinstance(limit, bool):
            return float(limit)  # the kind of model says on which side
        try:
            return parse_limit("limit", limit)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

    def rule(self, name: str) -> Rule:
        """The rule of that name; raises ConfigurationError for a limit that it cannot have."""
        rule = self.rule_by_default(name)
        if self.limit is not None:
            rule = rule.with_limit(parse_limit(name, self.limit, rule.limit))
        return rule if self.missing is None else rule.with_missing(self.missing)

    @abstractmethod
    def rule_by_default(self, name: str) -> Rule:
        """The rule of that name with the limit of its kind."""

    @abstractmethod
    def declare(self, name: str, folder: Path) -> RuleModel:
        """The asset and the rule; paths are relative to `folder`."""


class ClassifierEntry(ModelEntry):
    """A classifier: `positives` against `negatives`, or several `classes`."""

    positives: Examples | None = Field(default=None, description="examples of the class")
    negatives: Examples | None = Field(default=None, description="examples of everything else")
    classes: dict[str, Examples] | None = Field(default=None, description="examples of several classes")
    holdout: Annotated[float, Field(gt=0, lt=1)] | tuple[str, ...] = Field(
        default=0.2, description="sources kept from training: a share, or patterns"
    )
    source: str | None = Field(
        default=None, description="field to split by; default: repository, host or folder"
    )

    @model_validator(mode="after")
    def _two_classes(self) -> ClassifierEntry:
        two = self.positives is not None and self.negatives is not None and self.classes is None
        several = len(self.classes or {}) > 1 and self.positives is None and self.negatives is None
        if not two and not several:
            raise ValueError("Give `positives` and `negatives`, or two or more `classes`.")
        return self

    def rule_by_default(self, name: str) -> Rule:
        return classifier_rule(name, None, tuple(self.classes or ()))

    def declare(self, name: str, _folder: Path) -> RuleModel:
        from factory.orchestration.chain.models.classifier import classifier

        fields = {field: getattr(self, field) for field in ClassifierEntry.model_fields if field != "missing"}
        return classifier(name, **fields | {"limit": self.rule(name).limit})


class WordListEntry(ModelEntry):
    """A list of words: files by language."""

    profane: dict[str, str] = Field(default={}, description="files of words that decide, by language")
    flagged: dict[str, str] = Field(default={}, description="files of words that are only shown, by language")

    def rule_by_default(self, name: str) -> Rule:
        return ListedWords(name)

    def declare(self, name: str, folder: Path) -> RuleModel:
        from factory.orchestration.chain.models.word_list import word_list

        def paths(files: Mapping[str, str]) -> dict[str, Path]:
            return {language: _existing(folder, file) for language, file in files.items()}

        return word_list(name, paths(self.profane), paths(self.flagged), limit=self.rule(name).limit)


class LanguageModelEntry(ModelEntry):
    """n-gram models of the languages of a table."""

    table: str = Field(description="a dataset, or a table of documents such as `deduplicated.web`")
    languages: tuple[str, ...] = Field(default=(), description="languages; default: each with enough text")
    vocabulary: int = Field(default=VOCABULARY, description="tokens of a model's own, 256 to 4,096")

    def rule_by_default(self, name: str) -> Rule:
        return BitsPerByte(name)

    def declare(self, name: str, _folder: Path) -> RuleModel:
        from factory.orchestration.chain.models.ngram import language_model

        return language_model(
            name,
            self.table,
            languages=self.languages,
            vocabulary=self.vocabulary,
            limit=self.rule(name).limit,
        )


class OnnxModelEntry(ModelEntry):
    """A model in an ONNX file."""

    file: str = Field(description="the ONNX file, relative to this file's folder")

    def rule_by_default(self, name: str) -> Rule:
        return OnnxScore(name)

    def declare(self, name: str, folder: Path) -> RuleModel:
        from factory.orchestration.chain.models.onnx import onnx_model

        return onnx_model(name, _existing(folder, self.file), limit=self.rule(name).limit)


def _existing(folder: Path, file: str) -> Path:
    """Return the path of a file relative to `folder`; raises ConfigurationError if there is none."""
    path = folder / Path(file).expanduser()
    if not path.is_file():
        raise ConfigurationError(
            f"There is no file `{file}`. Paths are relative to the folder of this file, {folder.resolve()}."
        )
    return path


MODELS = ("classifiers", "word_lists", "language_models", "onnx_models")  # sections of a file


class RuleModels(FrozenModel):
    """The models of a datasets file by kind and name."""

    classifiers: dict[str, ClassifierEntry] = Field(
        default={}, description="classifiers, each with a rule of its name"
    )
    word_lists: dict[str, WordListEntry] = Field(
        default={}, description="lists of words, each with a rule of its name"
    )

    language_models: dict[str, LanguageModelEntry] = Field(
        default={}, description="n-gram models of languages, each with a rule of its name"
    )

    onnx_models: dict[str, OnnxModelEntry] = Field(
        default={}, description="models in ONNX files, each with a rule of its name"
    )

    @field_validator(*MODELS, mode="before")
    @classmethod
    def _models_are_known_by_name(cls, models: Any, info: ValidationInfo) -> Any:
        if info.context is not None and isinstance(models, Mapping):
            info.context.setdefault("declared", set()).update(models)
        return models

    @field_validator(*MODELS)
    @classmethod
    def _datasets_may_name_the_rules(
        cls, models: dict[str, ModelEntry], info: ValidationInfo
    ) -> dict[str, ModelEntry]:
        for name, entry in models.items():
            try:
                rule = entry.rule(name)
                rules([rule])
            except ConfigurationError as error:
                raise PydanticCustomError(
                    "model", "{message}", {"field": name, "message": str(error)}
                ) from error
            if info.context is not None:
                info.context.setdefault("rules", {})[name] = rule
        return models

    def entries(self) -> dict[tuple[str, str], ModelEntry]:
        """The entries by (kind, name)."""
        return {(kind, name): entry for kind in MODELS for name, entry in getattr(self, kind).items()}


class ModelsPart(Part):
    """Models that judge documents; their section comes first, because datasets name their rules."""

    file = RuleModels

    def check(self, file: Declared) -> None:
        """Raise InvalidValue for a name that two models have, or a tokenizer and a model."""
        kind_of = dict.fromkeys(
            (entry.fields(TokenizerFields).tokenizer for entry in file.datasets), "tokenizers"
        )
        for kind, name in file.section(RuleModels).entries():
            if name in kind_of:
                raise InvalidValue(
                    (kind, name), f"`{name}` is among `{kind_of[name]}` already. Choose another name."
                )
            kind_of[name] = kind

    def assets(self, file: Declared) -> Iterator[dg.AssetsDefinition]:
        for (kind, name), entry in file.section(RuleModels).entries().items():
            try:
                yield entry.declare(name, file.folder).asset
            except ConfigurationError as error:
                raise InvalidValue((kind, name), str(error)) from error
