"""What every value of the model shares: frozen, validated, finite, JSON both ways."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Self

from sluice.errors import BadInputError

Name = Annotated[str, Field(min_length=1)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Parallelism = Annotated[int, Field(ge=1)]


class Frozen(BaseModel):
    """A value: never changes, compares by content, refuses fields it does not know."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True, serialize_by_alias=True
    )

    @classmethod
    def parse(cls, data: object, what: str) -> Self:
        """Build from plain JSON data; `what` names the thing in the one-line error."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise BadInputError(f"{what}: {first_problem(error)}") from error

    def to_json(self) -> str:
        return self.model_dump_json()

    def to_data(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def first_problem(error: ValidationError) -> str:
    """The first thing wrong, with the place, the rule and the value that broke it."""
    problem = error.errors()[0]
    place = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error" or isinstance(problem["input"], dict):
        return f"{place}: {message}" if place else message
    return f"{place}: {message}, got {problem['input']!r}"
