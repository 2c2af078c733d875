#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strict JSON schemas for kubeconform, offline, from the OpenAPI file that the Go module k8s.io/kubernetes ships.

usage: k8s-schemas.py SWAGGER.json OUTDIR
       kubeconform -strict -schema-location 'OUTDIR/{{.ResourceKind}}{{.KindSuffix}}.json' FILE...
"""

import json
import pathlib
import sys

REF = "#/definitions/"
INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
# Types whose content is anybody's: what they hold is not checked.
ANYTHING = (".JSONSchemaProps", ".JSON", ".JSONSchemaPropsOrBool", ".JSONSchemaPropsOrArray",
            ".JSONSchemaPropsOrStringArray", ".FieldsV1", ".RawExtension")


def convert(node):
    """References into the shared file, x-kubernetes-* dropped."""
    if isinstance(node, list):
        return [convert(n) for n in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith(REF):
        return {"$ref": "_definitions.json" + ref}
    out = {k: convert(v) for k, v in node.items() if not k.startswith("x-kubernetes")}
    return dict(INT_OR_STRING) if out.get("format") == "int-or-string" else out


def definition(name, node):
    if name.endswith(".Quantity"):
        return {"oneOf": [{"type": "string"}, {"type": "number"}]}
    if name.endswith(".IntOrString"):
        return dict(INT_OR_STRING)
    if name.endswith(ANYTHING):
        return {}
    out = convert(node)
    if isinstance(out.get("properties"), dict):
        out.setdefault("additionalProperties", False)
        for key, value in out["properties"].items():  # the API server takes null for an optional field
            if key not in out.get("required", []) and "$ref" not in value and isinstance(value.get("type"), str):
                value["type"] = [value["type"], "null"]
    return out


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__)
    out = pathlib.Path(argv[2])
    out.mkdir(parents=True, exist_ok=True)
    source = json.loads(pathlib.Path(argv[1]).read_text())["definitions"]
    definitions = {name: definition(name, node) for name, node in source.items()}
    count = 0
    for name, node in source.items():
        for gvk in node.get("x-kubernetes-group-version-kind", []):
            schema = {"$schema": "http://json-schema.org/schema#", **definitions[name]}
            schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind"})
            parts = (gvk["kind"].lower(), gvk["group"].split(".")[0], gvk["version"].lower())
            (out / ("-".join(p for p in parts if p) + ".json")).write_text(json.dumps(schema))
            count += 1
    (out / "_definitions.json").write_text(json.dumps({"definitions": definitions}))
    print(count, "schemas in", out)


if __name__ == "__main__":
    main(sys.argv)
