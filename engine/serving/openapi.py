"""The reward server's OpenAPI document, made from the messages that it decodes and encodes."""

from importlib.metadata import version
from typing import Any

import msgspec

from adjudge.engine.serving.dialects import DIALECTS, Dialect

__all__ = ["Failure", "openapi"]

REFUSALS = {
    "400": "The body is not a valid request.",
    "401": "The bearer token is missing or wrong.",
    "403": "The Origin header is that of another site.",
    "408": "The body did not arrive in time.",
    "413": "The body, or the number of its items, is over the limit.",
    "415": "The body is compressed, which is not supported.",
    "421": "The Host header is not a name of this machine, and no token is set.",
    "429": "The server is at its limits; Retry-After says when to try again.",
    "503": "The reward failed and this dialect cannot express that, or the server is stopping.",
}


class Failure(msgspec.Struct, frozen=True):
    """The body of a refusal."""

    error: str


def openapi(authorised: bool) -> dict[str, Any]:
    """The OpenAPI 3.1 document; `authorised` says whether requests need the token."""
    messages = [kind for dialect in DIALECTS for kind in (dialect.body, dialect.answer)]
    schemas, parts = msgspec.json.schema_components(
        [*messages, Failure], ref_template="#/components/schemas/{name}"
    )
    bodies, answers, failure = schemas[:-1:2], schemas[1:-1:2], schemas[-1]
    paths: dict[str, Any] = {
        dialect.path: {"post": _post(dialect, body, answer, failure, authorised)}
        for dialect, body, answer in zip(DIALECTS, bodies, answers, strict=True)
    }
    paths["/healthz"] = {"get": _get("Whether the process is alive.", "text/plain")}
    paths["/readyz"] = {"get": _get("Whether it accepts rollouts.", "text/plain", {"503": "Not ready."})}
    refusal = {"401": REFUSALS["401"]} if authorised else {}
    paths["/metrics"] = {"get": _get("Counters for Prometheus.", "text/plain", refusal, authorised)}
    paths["/openapi.json"] = {"get": _get("This document.", "application/json")}
    components: dict[str, Any] = {"schemas": parts}
    if authorised:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "adjudge rewards", "version": version("adjudge")},
        "paths": paths,
        "components": components,
    }


def _post(dialect: Dialect[Any], body: Any, answer: Any, failure: Any, authorised: bool) -> dict[str, Any]:
    responses = {
        status: {"description": why, "content": {"application/json": {"schema": failure}}}
        for status, why in REFUSALS.items()
        if authorised or status != "401"
    }
    responses["429"]["headers"] = {"Retry-After": {"schema": {"type": "integer", "minimum": 1}}}
    responses["200"] = {"description": "Done.", "content": {"application/json": {"schema": answer}}}
    made: dict[str, Any] = {
        "summary": dialect.summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": dict(sorted(responses.items())),
    }
    return {**made, "security": [{"token": []}]} if authorised else made


def _get(
    summary: str, content: str, refusals: dict[str, str] | None = None, authorised: bool = False
) -> dict[str, Any]:
    kind = {"type": "object"} if content.endswith("json") else {"type": "string"}
    responses = {status: {"description": why} for status, why in (refusals or {}).items()}
    done = {"200": {"description": "Done.", "content": {content: {"schema": kind}}}}
    made: dict[str, Any] = {"summary": summary, "responses": {**done, **responses}}
    return {**made, "security": [{"token": []}]} if authorised else made
