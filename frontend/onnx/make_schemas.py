"""make_schemas.py OUT [--same-as FILE]: what the records of ONNX's ops (the onnx package) say of the inputs of the ops that are imported,
for the versions that ops/*.cpp list. Writes the rows of Schemas.inc; element types that Tressel lacks are left out,
as no value has them. With --same-as it fails where FILE, which is in the repository, holds other rows."""
import difflib
import pathlib
import re
import sys

from onnx import defs

HERE = pathlib.Path(__file__).parent
TYPES = {"float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16",
         "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool"}
FLOATS = {"f16", "f32", "f64"}
SETS = {"any": set(TYPES.values()), "number": set(TYPES.values()) - {"bool"}, "real": FLOATS | {"bf16"}, "float": FLOATS}


def spell(types):
    held = {TYPES[t[7:-1]] for t in types if t.startswith("tensor(") and t[7:-1] in TYPES}
    for name, members in SETS.items():
        if held == members:
            return name
    return "|".join(t for t in TYPES.values() if t in held)


def row(schema):
    """The inputs: NAME:T, with ? behind an optional name, * behind one that any number of inputs share, ** if they may differ in type.
    Behind them what the types' letters stand for."""
    kinds = defs.OpSchema.FormalParameterOption
    constraints = {c.type_param_str: spell(c.allowed_type_strs) for c in schema.type_constraints}
    inputs, used = [], []
    for i in schema.inputs:
        mark = "?" if i.option == kinds.Optional else ""
        if i.option == kinds.Variadic:
            mark = "*" if i.is_homogeneous else "**"
        letter = i.type_str
        if letter not in constraints:
            letter = spell([letter])
        elif letter not in used:
            used.append(letter)
        inputs.append(f"{i.name}{mark}:{letter}")
    return " ".join(inputs), " ".join(f"{t}={constraints[t]}" for t in used)


def main():
    first = {}
    for path in (HERE / "ops").glob("*.cpp"):
        for name, since in re.findall(r'\{"([A-Z]\w+)", (\d+), \w', path.read_text()):
            first[name] = min(int(since), first.get(name, 1 << 30))
    history = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    lines = []
    for name in sorted(first):
        versions = sorted(history[name], key=lambda s: s.since_version)
        # The version that the first one in the table falls into, and those behind it.
        begin = max(i for i, s in enumerate(versions) if s.since_version <= first[name])
        before = None
        for schema in versions[begin:]:
            if schema.deprecated:
                continue
            now = row(schema)
            if now != before:
                lines.append('{"%s", %d, "%s", "%s"},\n' % (name, schema.since_version, *now))
            before = now
    out = pathlib.Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(["// Made by make_schemas.py from the records of onnx: run `ninja -C build update-onnx-schemas`.\n", *lines])
    out.write_text(text)
    if "--same-as" in sys.argv:
        kept = pathlib.Path(sys.argv[sys.argv.index("--same-as") + 1])
        changes = list(difflib.unified_diff(kept.read_text().splitlines(), text.splitlines(), str(kept), str(out), lineterm=""))
        print("\n".join(changes))
        sys.exit(bool(changes))


if __name__ == "__main__":
    main()
