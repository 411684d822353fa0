"""Bytes or text from a client -> one JSON object, without the leniencies of `json.loads`.

Refused: what is not UTF-8, duplicate keys, NaN and Infinity, lone surrogates, numbers of thousands of digits, nesting
that exhausts the parser, and anything that is not an object. Source: security facts, section C.
"""

import json
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from sentinel.server.problem import Problem, invalid

Model = TypeVar("Model", bound=BaseModel)


def parse_object(data: bytes | str) -> dict[str, Any]:
    """Return the JSON object that `data` holds, or raise `Problem` 400 (unreadable) or 422 (not an object)."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value: Any = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as fault:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise _malformed(fault) from fault
    if not isinstance(value, dict):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", "body: a JSON object is expected")
    return value  # pyright: ignore[reportUnknownVariableType]  # keys are str by JSON's grammar


def parse_as(model: type[Model], value: dict[str, Any]) -> Model:
    """Return `value` as `model`, or raise `Problem` 422 that names each field at fault."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise invalid(error) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _malformed(fault: Exception) -> Problem:
    match fault:
        case RecursionError():
            what = "it is nested too deeply"
        case UnicodeDecodeError():
            what = "it is not UTF-8"
        case json.JSONDecodeError():
            what = f"{fault.msg} at character {fault.pos}"
        case _:
            what = str(fault)
    return Problem(HTTPStatus.BAD_REQUEST, "malformed-json", f"the body is not JSON: {what}")
