"""Write the description of the API in OpenAPI 3.1 from its routes, their types and docstrings."""

import re
from pathlib import Path
from typing import Any

import msgspec

from shortlist import __version__, service
from shortlist.service._api import REF, Answer, Case, Failed, Route
from shortlist.service._routes import ROUTES

FILE = Path(service.__file__).with_name("openapi.json")


def describe_api(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Return the description of routes as a plain object."""
    used = [kind for route in routes for kind in (route.body, route.query, route.answer)]
    kinds = [Answer, Case, Failed, *filter(None, used)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REF)
    schema_of = dict(zip(map(str, kinds), schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        fields = components[route.query.__name__]["properties"] if route.query else {}
        described = _described(route, fields, schema_of)
        paths.setdefault(route.path, {})[route.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "shortlist", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(route: Route, fields: dict[str, Any], schema_of: dict[str, Any]) -> dict[str, Any]:
    one = {"type": "string", "minLength": 1, "maxLength": 200}
    problem = {"$ref": REF.format(name="ProblemDetails")}
    answer = "text/plain" if route.answer is str else "application/json"
    described = {
        "operationId": route.name,
        "summary": str(route.handler.__doc__).splitlines()[0],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": one}
            for name in re.findall(r"{(\w+)}", route.path)
        ]
        + [{"name": name, "in": "query", "schema": schema} for name, schema in fields.items()],
        "responses": {
            "200": {
                "description": "The answer",
                "content": {answer: {"schema": schema_of[str(route.answer)]}},
            },
            "default": {
                "description": "A problem: why there is no answer",
                "content": {"application/problem+json": {"schema": problem}},
            },
        },
        "security": [] if route.is_open else [{}, {"key": []}],
    }
    if route.body is not None:
        file = {"type": "string", "minLength": 1}
        schema = file if route.body is bytes else schema_of[str(route.body)]
        content = {route.content_type: {"schema": schema}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def written_api() -> bytes:
    """Return the description of all routes as the file has it."""
    return msgspec.json.format(msgspec.json.encode(describe_api(ROUTES)), indent=1) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(written_api())
