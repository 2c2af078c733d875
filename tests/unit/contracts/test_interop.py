# SPDX-License-Identifier: Apache-2.0
"""Our codec and fastavro read each other, in every record, version and framing; and the schemas evolve as they must."""

import copy
import io
import json
import os
import pathlib
import random
import subprocess

import fastavro
import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form

ROOT = pathlib.Path(__file__).resolve().parents[3]
AVRO = ROOT / "schemas" / "avro"
TOOL = pathlib.Path(os.environ["PAY_BUILD_DIR"]) / "tests" / "contracts_interop_tool"
RECORDS = ["RawNotification", "Command", "CommandSecrets", "PaymentInput", "PspJob", "PaymentEvent", "DeadLetter"]
SEED = int(os.environ.get("PAY_SEED", "20261130"))
RANDOM_VALUES = 200

PAYMENT_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# The field that says which part is set, and the parts of each symbol.
COMMAND_TYPES = {"name": "type", "parts": lambda s: {s.lower()}}
INPUT_KINDS = {
    "name": "kind",
    "parts": lambda s: {
        {"PSP_EVENT": "event", "COMMAND": "command", "REJECTED_COMMAND": "command", "DEADLINE": "deadline",
         "REPLAY": "replay", "REFUSED_NOTIFICATION": "refused"}.get(s, "")
    },
    "all": {"event", "command", "deadline", "replay", "refused"},
}  # fmt: skip


def load(record):
    return json.loads((AVRO / f"{record}.avsc").read_text())


def history(record):
    files = sorted((AVRO / "history" / record).glob("*.avsc"), key=lambda f: int(f.stem))
    return {int(f.stem): json.loads(f.read_text()) for f in files}


def parse(schema):
    return fastavro.parse_schema(copy.deepcopy(schema), named_schemas={})


def crc(schema):
    """As the 8 bytes of single-object encoding: fastavro gives them in hex, little endian."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(copy.deepcopy(schema)), "CRC-64-AVRO"))


def encode(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse(schema), value)
    return b"\xc3\x01" + crc(schema) + out.getvalue()


def decode(schema, value, reader=None):
    assert value[:10] == b"\xc3\x01" + crc(schema)
    body = io.BytesIO(value[10:])
    decoded = fastavro.schemaless_reader(body, parse(schema), parse(reader) if reader else None)
    assert body.read() == b""
    return plain(decoded)


def plain(value):
    """fastavro gives logical types as Python's: back to the numbers of the wire."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def without_logical(schema):
    if isinstance(schema, dict):
        return {k: without_logical(v) for k, v in schema.items() if k != "logicalType"}
    if isinstance(schema, list):
        return [without_logical(s) for s in schema]
    return schema


class Tool:
    def __init__(self):
        self.process = subprocess.Popen([str(TOOL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer or words[0] == "version", f"the tool ended at {words[:2]}"
        return answer

    def value(self, *words):
        answer = self.ask(*words)
        assert not answer.startswith("!"), f"{words[:2]}: {answer}"
        return bytes.fromhex(answer)


@pytest.fixture
def tool():
    running = Tool()
    yield running
    running.process.stdin.close()
    assert running.process.wait(timeout=20) == 0  # Under a sanitizer a leak ends it with another code.


# --- Walking a schema ---------------------------------------------------------------------------


def named_types(schema, into=None):
    into = {} if into is None else into
    if isinstance(schema, list):
        for branch in schema:
            named_types(branch, into)
    elif isinstance(schema, dict):
        if "name" in schema and schema["type"] in ("record", "enum", "fixed"):
            into[schema["name"]] = schema
        for field in schema.get("fields", []):
            named_types(field["type"], into)
        for inner in ("items", "values", "type"):
            named_types(schema.get(inner), into)
    return into


def is_optional(schema):
    return isinstance(schema, list)


def of(schema):
    """The type behind ["null", X]."""
    return schema[1] if isinstance(schema, list) else schema


def kinds_of(record):
    if record == "Command":
        types = named_types(load(record))["CommandType"]["symbols"]
        return {**COMMAND_TYPES, "all": {t.lower() for t in types}, "symbols": types}
    if record == "PaymentInput":
        return {**INPUT_KINDS, "symbols": named_types(load(record))["InputKind"]["symbols"]}
    return None


def number(name):
    return sum((i + 1) * ord(c) for i, c in enumerate(name))


def padded(name):
    sizes = {"sha256": 32, "secrets_sha256": 32, "request_sha256": 32, "salt": 16, "signature": 64}
    return name.ljust(sizes.get(name, 0), ".")[:8 if name == "writer_fingerprint" else None].encode()


def full(schema, names, name=""):
    """The value of samples.c, from the schema alone."""
    schema = of(schema)
    schema = names.get(schema, schema) if isinstance(schema, str) else schema
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record":
        return {f["name"]: full(f["type"], names, f["name"]) for f in schema["fields"]}
    if kind == "array":
        return [full(schema["items"], names, name)] * 2
    if kind == "map":
        return {"name": "value"}
    if kind == "enum":
        return schema["symbols"][1]
    if kind == "boolean":
        return name not in ("start", "is_final")
    if kind in ("long", "int"):
        return number(name)
    if kind == "bytes":
        return padded(name)
    special = {"currency": "EUR", "payment_id": PAYMENT_ID, "traceparent": TRACEPARENT}
    return special.get(name, name)


def choose(record, value, symbol):
    """Leave only the part that the kind names."""
    kinds = kinds_of(record)
    parts = kinds["parts"](symbol)
    return {**value, kinds["name"]: symbol, **{p: None for p in kinds["all"] - parts if p in value}}


def samples(record):
    value = full(load(record), named_types(load(record)))
    kinds = kinds_of(record)
    return [choose(record, value, s) for s in kinds["symbols"]] if kinds else [value]


class Random:
    """Any value that the bounds allow."""

    def __init__(self, record, seed):
        self.record, self.random = record, random.Random(seed)
        self.names = named_types(load(record))

    def text(self, name, most=8):
        alphabet = "abcXYZ019 _-.:/|%é漢🙂"
        if name in ("currency",):
            return "".join(self.random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=3))
        if name == "failure_code":
            alphabet = "abzAZ09_.-"
        if name == "traceparent":
            return TRACEPARENT
        if name == "payment_id":
            return PAYMENT_ID
        return "".join(self.random.choices(alphabet, k=self.random.randint(1, most)))

    def value(self, schema, name=""):
        if is_optional(schema) and self.random.random() < 0.4:
            return None
        schema = of(schema)
        schema = self.names.get(schema, schema) if isinstance(schema, str) else schema
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind == "record":
            return {f["name"]: self.value(f["type"], f["name"]) for f in schema["fields"]}
        return getattr(self, kind)(schema, name)

    def array(self, schema, name):
        least = 1 if name == "attachments" else 0
        return [self.value(schema["items"], name) for _ in range(self.random.randint(least, 5))]

    def map(self, schema, name):
        return {f"{i}{self.text(name)}": self.text(name) for i in range(self.random.randint(0, 5))}

    def enum(self, schema, name):
        return self.random.choice(schema["symbols"])

    def boolean(self, schema, name):
        return self.random.random() < 0.5

    def string(self, schema, name):
        return self.text(name)

    def long(self, schema, name):
        return self.random.choice([1, 63, 64, 2**31, 2**62, 2**63 - 1, self.random.randint(1, 10**12)])

    def int(self, schema, name):
        return self.random.choice([1, 127, 2**31 - 1, self.random.randint(1, 10**6)])

    def bytes(self, schema, name):
        sizes = {"sha256": 32, "secrets_sha256": 32, "request_sha256": 32, "salt": 16, "writer_fingerprint": 8}
        return self.random.randbytes(sizes.get(name, self.random.randint(1, 40)))

    def record_value(self):
        value = self.value(load(self.record))
        kinds = kinds_of(self.record)
        if kinds is None:
            return value
        symbol = self.random.choice(kinds["symbols"])
        for part in kinds["parts"](symbol) & value.keys():
            while value[part] is None:
                field = next(f for f in load(self.record)["fields"] if f["name"] == part)
                value[part] = self.value(field["type"], part)
        return choose(self.record, value, symbol)


def pytest_generate_tests(metafunc):
    if "record" in metafunc.fixturenames:
        metafunc.parametrize("record", RECORDS)


# --- The two codecs agree -----------------------------------------------------------------------


def test_fingerprint_is_fastavros(tool, record):
    assert bytes.fromhex(tool.ask("fingerprint", record))[::-1] == crc(load(record))


def test_every_field_is_bound_to_its_member(tool, record):
    schema = load(record)
    for variant, value in enumerate(samples(record)):
        written = tool.value("sample", record, variant)
        assert decode(without_logical(schema), written) == value
        assert encode(without_logical(schema), value) == written
        assert tool.value("recode", record, written.hex()) == written


def test_optional_parts_may_be_left_out(tool, record):
    schema = without_logical(load(record))
    for variant in range(len(samples(record))):
        written = tool.value("small", record, variant)
        value = decode(schema, written)
        assert encode(schema, value) == written
        assert tool.value("recode", record, written.hex()) == written


def test_random_values_go_round(tool, record):
    print(f"seed {SEED}")
    schema, maker = without_logical(load(record)), Random(record, SEED)
    for _ in range(RANDOM_VALUES):
        value = maker.record_value()
        written = encode(schema, value)
        assert tool.value("recode", record, written.hex()) == written, value


# --- Evolution ----------------------------------------------------------------------------------


def fields_of(schema):
    return {f["name"]: f for f in schema["fields"]}


def readable(reader, writer, where, names):
    """Yield why data of writer cannot be read by reader. names: both sides' named types."""
    reader = names[0].get(reader, reader) if isinstance(reader, str) else reader
    writer = names[1].get(writer, writer) if isinstance(writer, str) else writer
    if isinstance(reader, list) != isinstance(writer, list):
        if isinstance(writer, list):
            yield f"{where}: null can come where a value is needed"
    if isinstance(reader, list) or isinstance(writer, list):
        yield from readable(of(reader), of(writer), where, names)
        return
    kind = [s["type"] if isinstance(s, dict) else s for s in (reader, writer)]
    if kind[0] != kind[1]:
        if kind != ["long", "int"]:
            yield f"{where}: {kind[1]} became {kind[0]}"
    elif kind[0] == "record":
        theirs = fields_of(writer)
        for name, field in fields_of(reader).items():
            if name in theirs:
                yield from readable(field["type"], theirs[name]["type"], f"{where}.{name}", names)
            elif "default" not in field:
                yield f"{where}.{name}: is missing and has no default"
    elif kind[0] == "enum":
        if set(writer["symbols"]) - set(reader["symbols"]) and "default" not in reader:
            yield f"{where}: unknown symbols and no default"
    elif kind[0] in ("array", "map"):
        inner = "items" if kind[0] == "array" else "values"
        yield from readable(reader[inner], writer[inner], f"{where}[]", names)


def incompatibilities(reader, writer):
    return list(readable(reader, writer, reader["name"], (named_types(reader), named_types(writer))))


def versions(record):
    return {**history(record), 0: load(record)}


def test_history_is_there_and_ends_with_the_current_schema(record):
    known = history(record)
    assert sorted(known) == list(range(1, len(known) + 1)) and known
    assert crc(known[len(known)]) == crc(load(record)), "copy the changed schema to history as the next version"
    listed = (ROOT / "common" / "contracts" / "CMakeLists.txt").read_text()
    for number in known:
        assert f"{record}/{number}" in listed, f"{record}/{number} is not compiled in"


def test_every_version_reads_every_other(record):
    for a in versions(record).values():
        for b in versions(record).values():
            assert incompatibilities(a, b) == []


def test_the_rule_sees_what_breaks():
    old = load("PspJob")
    for change in (
        lambda s: s["fields"].append({"name": "added", "type": "string"}),
        lambda s: s["fields"].pop(0),
        lambda s: fields_of(s)["amount_minor"].update(type="string"),
        lambda s: fields_of(s)["notify_url"].update(type="string"),
    ):
        new = copy.deepcopy(old)
        change(new)
        assert incompatibilities(new, old) or incompatibilities(old, new)


def has_symbols_of(schema, value):
    """False for a value with an enum's symbol that came after the schema."""
    try:
        encode(schema, value)
    except ValueError as error:
        assert "is not in list" in str(error)
        return False
    return True


def test_older_data_is_read_and_ours_is_read_by_older_readers(tool, record):
    current = without_logical(load(record))
    for version, older in history(record).items():
        older = without_logical(older)
        assert tool.ask("version", record, 0) == ""
        for variant, value in enumerate(samples(record)):
            if has_symbols_of(older, value):
                tool.value("recode", record, encode(older, value).hex())
            else:
                assert crc(older) != crc(current)
            assert decode(current, tool.value("sample", record, variant), older) is not None
        assert tool.ask("version", record, version) == ""
        written = tool.value("sample", record, 0)
        assert written[2:10] == crc(older)
        assert decode(older, written) is not None
        assert tool.ask("version", record, len(history(record))) == ""  # The current one again, for the next turn.


def evolve(schema, rng, add_symbols=True):
    """A schema as a later release could write it: fields in another order, optional ones added and removed, symbols
    added."""
    if isinstance(schema, list):
        return [evolve(s, rng, add_symbols) for s in schema]
    if not isinstance(schema, dict):
        return schema
    out = {k: evolve(v, rng, add_symbols) if k in ("type", "items", "values") else v for k, v in schema.items()}
    if schema.get("type") == "record":
        fields = [{**f, "type": evolve(f["type"], rng, add_symbols)} for f in schema["fields"]]
        removable = [f for f in fields if "default" in f and not named_types(f["type"])]
        for field in rng.sample(removable, len(removable) // 3):
            fields.remove(field)
        fields.append({"name": "later_text", "type": ["null", "string"], "default": None})
        fields.append({"name": "later_list", "type": {"type": "array", "items": {"type": "map", "values": "double"}}, "default": []})
        fields.append({"name": "later_number", "type": "float", "default": 0})
        if not defines_used_later(fields):
            rng.shuffle(fields)
        out["fields"] = fields
    if schema.get("type") == "enum" and add_symbols:
        out["symbols"] = ["LATER_SYMBOL"] + schema["symbols"]
    return out


def defines_used_later(fields):
    """Avro names a type after its definition only: such fields keep their order."""
    used = json.dumps(fields)
    return any(used.count(f'"{name}"') > 1 for f in fields for name in named_types(f["type"]))


def test_data_of_a_later_release_is_read(tool, record):
    rng = random.Random(SEED)
    current = without_logical(load(record))
    for turn in range(20):
        later = evolve(current, rng)
        learned = tool.ask("learn", record, json.dumps(later).encode().hex())
        assert bytes.fromhex(learned)[::-1] == crc(later)
        for value in samples(record):
            written = encode(later, with_later(later, value, named_types(later)))
            ours = tool.value("recode", record, written.hex())
            # What fastavro makes of it by the rules of schema resolution is what we make of it.
            assert decode(current, ours) == decode(later, written, current)


def with_later(schema, value, names):
    schema = of(schema)
    schema = names.get(schema, schema) if isinstance(schema, str) else schema
    if value is None or not isinstance(schema, dict):
        return value
    if schema["type"] == "array":
        return [with_later(schema["items"], v, names) for v in value]
    if schema["type"] != "record":
        return value
    later = {"later_text": "later", "later_list": [{"a": 1.0}, {}, {"b": 2.0, "c": 3.0}], "later_number": 0.5}
    return {
        f["name"]: with_later(f["type"], value[f["name"]], names) if f["name"] in value else later[f["name"]]
        for f in schema["fields"]
    }


def test_a_symbol_that_we_do_not_know_becomes_the_default(tool):
    current = without_logical(load("PaymentEvent"))
    later = evolve(current, random.Random(1))
    tool.ask("learn", "PaymentEvent", json.dumps(later).encode().hex())
    value = samples("PaymentEvent")[0]
    value = {**value, "type": "LATER_SYMBOL", "evidence_level": "LATER_SYMBOL"}
    ours = tool.value("recode", "PaymentEvent", encode(later, with_later(later, value, named_types(later))).hex())
    assert decode(current, ours)["type"] == "Unrecognized"
    assert decode(current, ours)["evidence_level"] == "UNRECOGNIZED"


def test_refusals_say_which(tool):
    job = encode(without_logical(load("PspJob")), samples("PspJob")[0])
    assert tool.ask("recode", "PspJob", job[:-1].hex()).startswith("!MALFORMED")
    assert tool.ask("recode", "PspJob", (job[:2] + b"\0" * 8 + job[10:]).hex()).startswith("!SCHEMA_UNKNOWN")
    assert tool.ask("recode", "PspJob", (b"\0\0\0\0\7" + job[10:]).hex()).startswith("!SCHEMA_UNKNOWN")
    assert tool.ask("recode", "PspJob", job[10:].hex()).startswith("!MALFORMED")
    long = {**samples("PspJob")[0], "description": "x" * 128}
    assert tool.ask("recode", "PspJob", encode(without_logical(load("PspJob")), long).hex()).startswith("!TOO_LARGE")
    bad = {**samples("PspJob")[0], "traceparent": "00-nonsense"}
    recoded = tool.value("recode", "PspJob", encode(without_logical(load("PspJob")), bad).hex())
    assert decode(without_logical(load("PspJob")), recoded)["traceparent"] is None


def test_a_schema_that_does_not_fit_is_not_learned(tool):
    for change in (
        lambda s: s["fields"].pop(0),
        lambda s: fields_of(s)["job_id"].update(type="long"),
        lambda s: s.update(name="Other"),
        lambda s: s["fields"].append({"name": "more", "type": {"type": "record", "name": "Endless", "fields": [
            {"name": "next", "type": ["null", "Endless"], "default": None}]}, "default": {}}),
    ):  # fmt: skip
        schema = load("PspJob")
        change(schema)
        assert tool.ask("learn", "PspJob", json.dumps(schema).encode().hex()).startswith("!")
    assert tool.ask("learn", "PspJob", b"{".hex()).startswith("!MALFORMED")
