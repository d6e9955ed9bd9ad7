#!/usr/bin/env python3
"""Rejects what the number rules forbid in kernel text (docs/numerics.md, rules 1 and 3).

In cl/contract and cl/op: mad, dot, mix, native_*, half_*, built-in transcendentals and square root,
fmax/fmin, double, float atomics, group reductions, relaxed-math options and pragmas, approximate or
flushing instructions in inline assembly, unsuffixed floating literals, division by or of a floating
literal.
In cl/contract also: recursion, variable-length arrays, types outside num.h, words of OpenCL C
used as names, `fma` written directly, constants at file scope, standard headers outside num.h,
includes by another path than contract/..., functions that are not LKS_INLINE or LKS_ELEMENT, shifts
by the width.

Usage: check_contract_text.py ROOT | --self-test
"""
import os
import re
import sys

TRANSCENDENTAL = """acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt cos cosh
cospi erf erfc exp exp2 exp10 expm1 hypot lgamma lgamma_r log log2 log10 log1p logb pow pown powr
rootn rsqrt sin sincos sinh sinpi tan tanh tanpi tgamma length distance normalize fast_length
fast_distance fast_normalize fmod remainder remquo""".split()
FORBIDDEN_CALLS = {"mad": "fuses on some devices only; write lks_fma",
                   "dot": "its order is not fixed", "mix": "its rounding is not fixed",
                   "fmax": "may return either zero; write the select",
                   "fmin": "may return either zero; write the select",
                   "sqrt": "is not correctly rounded everywhere; use lks_sqrt",
                   "native_divide": "is approximate", "smoothstep": "its rounding is not fixed"}
for name in TRANSCENDENTAL:
    FORBIDDEN_CALLS[name] = "a built-in whose bits differ between devices; use the lks_ function"
for name in list(FORBIDDEN_CALLS):
    FORBIDDEN_CALLS.setdefault(name + "f", FORBIDDEN_CALLS[name])

FORBIDDEN_WORDS = [
    (r"native_\w+", "native_ functions are approximate"),
    (r"half_\w+(?=\s*\()", "half_ functions are approximate"),
    (r"(?:work|sub)_group_\w*(?:reduce|scan)\w*", "a group reduction whose order is not fixed"),
    (r"atomic_(?:float|double)", "float atomics add in any order"),
    (r"(?:atomic|atom)_(?:xchg|cmpxchg|exchange\w*|compare_exchange\w*)",
     "exchanges serve to build float atomics, which add in any order"),
    (r"double\d*", "arithmetic is fp32"),
]
FORBIDDEN_TEXT = [
    (r"-cl-(?:fast-relaxed-math|mad-enable|unsafe-math-optimizations|finite-math-only"
     r"|no-signed-zeros|denorms-are-zero)", "a relaxed-math option"),
    (r"-f(?:fast-math|unsafe-math\w*|associative-math|reciprocal-math)", "a relaxed-math option"),
    (r"FP_CONTRACT\s+(?:ON|DEFAULT)", "contraction must stay off"),
    (r"fp\s+(?:contract\s*\(\s*(?:fast|on)|reassociate)", "contraction must stay off"),
    (r"\.ftz\b", "flushes subnormal numbers"),
    (r"\.approx\b", "an approximate instruction"),
    (r"\bmad(?:\.\w+)*\.f32\b", "an instruction whose rounding is not fixed"),
    (r"\b(?:red|atom)(?:\.\w+)*\.(?:f32|f16x2|bf16x2|f16|bf16)\b",
     "float atomics add in any order"),
]
# Ours alone: num.h gives the types, and these words mean something in OpenCL C.
CONTRACT_WORDS = {
    "a type outside num.h": """long size_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t
        int64_t uint8_t uint16_t uint32_t uint64_t float int uint ulong unsigned signed short
        ushort char uchar bool _Bool""".split(),
    "a word of OpenCL C": """half global local constant kernel private generic read_only write_only
        read_write pipe uniform event_t sampler_t vec_step quad""".split(),
    "written directly; use lks_fma": ["fma", "fmaf"],
}
CONTROL = {"if", "for", "while", "switch", "return", "sizeof", "do", "else", "case"}
FLOAT = re.compile(r"(?<![\w.])(?:0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+"
                   r"|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(\w*)")
INLINE = re.compile(r"^(?:LKS_INLINE|LKS_ELEMENT|static\s+inline)\b")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def strip(text, strings):
    """The text with comments, and strings too if asked, replaced by spaces; lines stay."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: m.group(0) if m.group(0)[0] in "\"'" and not strings else blank(m),
                     text)


def top_level(code):
    """(offset, text, is_body) of each piece outside braces, and of each outermost body."""
    depth, start = 0, 0
    for i, c in enumerate(code):
        if c == "{":
            if depth == 0:
                yield start, code[start:i], False
                start = i
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                yield start, code[start:i + 1], True
                start = i + 1
        elif c == ";" and depth == 0:
            yield start, code[start:i + 1], False
            start = i + 1


def functions(code):
    """(offset, head, name, body) of each function defined in the text."""
    pieces = list(top_level(code))
    for (at, head, _), (_, body, is_body) in zip(pieces, pieces[1:]):
        match = re.search(r"(\w+)\s*\([^{};]*\)\s*$", head)
        if is_body and match and "=" not in head:
            yield at + len(head) - len(head.lstrip()), head.strip(), match.group(1), body


class Checker:
    def __init__(self):
        self.errors = []
        self.calls = {}   # contract function -> the names it calls
        self.places = {}  # contract function -> where it is defined

    def error(self, path, text, offset, message):
        self.errors.append("%s:%d: %s" % (path, text.count("\n", 0, offset) + 1, message))

    def common(self, path, text, code, literal_text, is_num):
        for match in re.finditer(r"\b([A-Za-z_]\w*)\s*\(", code):
            reason = FORBIDDEN_CALLS.get(match.group(1))
            if reason and not (is_num and match.group(1) in ("sqrt", "sqrtf")):
                self.error(path, text, match.start(), "%s: %s" % (match.group(1), reason))
        for pattern, reason in FORBIDDEN_WORDS:
            for match in re.finditer(r"\b%s\b" % pattern, code):
                self.error(path, text, match.start(), "%s: %s" % (match.group(0), reason))
        for pattern, reason in FORBIDDEN_TEXT:
            for match in re.finditer(pattern, literal_text):
                self.error(path, text, match.start(), "%s: %s" % (match.group(0), reason))
        for match in FLOAT.finditer(code):
            if match.group(1) not in ("f", "F"):
                self.error(path, text, match.start(),
                           "%s: a floating literal without the suffix f" % match.group(0))
            if re.search(r"/\s*$", code[:match.start()]) or \
                    re.match(r"\s*/", code[match.end():]):
                self.error(path, text, match.start(),
                           "%s: `/` on floats is not correctly rounded everywhere; use lks_div" %
                           match.group(0))

    def contract(self, path, text, code, plain, is_num):
        for reason, words in CONTRACT_WORDS.items():
            for match in re.finditer(r"\b(?:%s)\b" % "|".join(words), code):
                if not is_num:
                    self.error(path, text, match.start(), "%s: %s" % (match.group(0), reason))
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]*)', text, re.M):
            if match.group(1) == "<" and not is_num:
                self.error(path, text, match.start(), "<%s>: a standard header" % match.group(2))
            if match.group(1) == '"' and not match.group(2).startswith("contract/"):
                self.error(path, text, match.start(),
                           '"%s": include contract text as "contract/..."' % match.group(2))
        for at, piece, is_body in top_level(plain):
            words = piece.strip()
            at += len(piece) - len(piece.lstrip())
            if is_body or words.startswith("typedef") or "_Static_assert" in words:
                continue
            if "=" in words or re.match(r"(?:static|const|LKS_CONST|__constant)\b", words) and \
                    "(" not in words:
                self.error(path, text, at, "data at file scope: put the literals into the code")
        for at, head, name, body in functions(plain):
            if not INLINE.match(head):
                self.error(path, text, at, "%s: functions are LKS_INLINE" % name)
            self.calls[name] = set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", body)) - CONTROL
            self.places[name] = (path, text.count("\n", 0, at) + 1)
            for match in re.finditer(r"\b[A-Za-z_]\w*\s+\w+\s*\[([^\]]*)\]", body):
                if re.search(r"\b(?!sizeof)[a-z]\w*\b", re.sub(r"\b\d\w*", "", match.group(1))) \
                        and not re.match(r"return\b", match.group(0)):
                    self.error(path, text, text.find(match.group(0), at),
                               "%s: an array of variable length" % match.group(0))
        self.shifts(path, text, code)

    def shifts(self, path, text, code):
        wide = set(re.findall(r"\bU64\s+(\w+)", code))
        for group in re.findall(r"\bU64\s+([^;(){}]*)[;)]", code):
            wide |= set(re.findall(r"(?:^|,)\s*(\w+)", group))
        for match in re.finditer(r"(?:<<|>>)=?\s*(\d+)[uUlL]*\b", code):
            amount = int(match.group(1))
            statement = re.split(r"[;{}]", code[:match.start()])[-1]
            is_wide = "U64" in statement or wide & set(re.findall(r"\w+", statement))
            if amount >= (64 if is_wide else 32):
                self.error(path, text, match.start(), "%s: a shift by the width" % match.group(0))

    def recursion(self):
        """Every function that can reach itself through contract text."""
        for name in self.calls:
            seen, todo = set(), [name]
            while todo:
                for callee in self.calls.get(todo.pop(), ()):
                    if callee == name:
                        self.errors.append("%s:%d: %s: recursion" % (*self.places[name], name))
                        todo = []
                        break
                    if callee not in seen:
                        seen.add(callee)
                        todo.append(callee)

    def file(self, path, text, is_contract):
        # A continued line is one line of the preprocessor; lines are kept for the messages.
        code = strip(text, True).replace("\\\n", " \n")
        literal_text = re.sub(r"^[ \t]*#[ \t]*error[^\n]*", blank, strip(text, False), flags=re.M)
        directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
        plain = directive.sub(blank, strip(text, True))
        names = re.sub(r"^[ \t]*#[ \t]*(?:include|error|pragma|ifdef|ifndef)[^\n]*", blank, code,
                       flags=re.M)
        is_num = os.path.basename(path) == "num.h"
        self.common(path, text, names, literal_text, is_num)
        if is_contract:
            self.contract(path, text, names, plain, is_num)


def check(texts):
    """Errors of {path: text}; paths begin with cl/contract/ or cl/op/."""
    checker = Checker()
    for path in sorted(texts):
        checker.file(path, texts[path], path.startswith("cl/contract/"))
    checker.recursion()
    return checker.errors


def without_contract(texts):
    """Programs of cl/op that include no contract text, hence do not turn contraction off."""
    return ["%s:1: includes no contract text, so contraction is on" % path
            for path in sorted(texts) if path.startswith("cl/op/") and path.endswith(".cl")
            and not re.search(r'^[ \t]*#[ \t]*include[ \t]*"contract/', texts[path], re.M)]


def read(root):
    texts = {}
    for folder in ("cl/contract", "cl/op"):
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if name.endswith((".h", ".cl")):
                    path = os.path.join(where, name)
                    with open(path, encoding="ascii") as f:
                        texts[os.path.relpath(path, root)] = f.read()
    return texts


def body(line):
    return "LKS_INLINE F32 f(F32 x, F32 y)\n{\n    %s\n}\n" % line


# What must be rejected, in contract text and, unless the last word is False, in cl/op as well.
BAD = [(body(line), where) for line, where in [
    ("return mad(x, y, x);", True), ("return dot(x, y);", True), ("return mix(x, y, x);", True),
    ("return native_exp(x);", True), ("return native_divide(x, y);", True),
    ("return half_sqrt(x);", True), ("return exp(x);", True), ("return expf(x);", True),
    ("return log1p (x);", True), ("return tanh(x);", True), ("return pow(x, y);", True),
    ("return rsqrt(x);", True), ("return sqrt(x);", True), ("return sqrtf(x);", True),
    ("return fmax(x, y);", True), ("return fminf(x, y);", True), ("return erf(x);", True),
    ("return sincos(x, &y);", True), ("return length(x);", True),
    ("return work_group_reduce_add(x);", True), ("return sub_group_scan_inclusive_add(x);", True),
    ("return sub_group_non_uniform_reduce_add(x);", True),
    ("volatile __global atomic_float *p;", True), ("atomic_cmpxchg(p, a, b);", True),
    ("atomic_xchg(p, x);", True), ("atom_cmpxchg(p, a, b);", True),
    ("double d = x;", True), ("return x * 0.5;", True), ("return x * 1e-3;", True),
    ("return x * .5;", True), ("return x * 1.;", True), ("return x * 0x1.8p0;", True),
    ("return x / 3.0f;", True), ("return 1.0f / x;", True),
    ('asm("ex2.approx.f32 %0, %1;");', True), ('asm("fma.rn.ftz.f32 %0;");', True),
    ('asm("mad.rn.f32 %0;");', True), ('asm("red.global.add.f32 [%0], %1;");', True),
    ("return fma(x, y, x);", False), ("return fmaf(x, y, x);", False),
    ("long n = 0;", False), ("size_t n = 0u;", False), ("float z = x;", False),
    ("int n = 0;", False), ("uint32_t n = 0u;", False), ("unsigned n = 0u;", False),
    ("I32 half = 1;", False), ("F32 local = x;", False),
    ("F32 t[n];", False), ("F32 t[2 * n + 1];", False),
    ("return f(x, y);", False),
    ("U32 u = lks_bits(x) << 32;", False), ("U32 u = lks_bits(x) >> 32u;", False),
    ("U64 u = (U64)lks_bits(x) << 64;", False), ("U32 u = 1u; u >>= 32;", False),
]] + [
    ("static const F32 t[2] = {1.0f, 2.0f};\n", False),
    ("const F32 k = 1.0f;\n", False),
    ("LKS_CONST F32 k = 1.0f;\n", False),
    ("static F32 state;\n", False),
    ("__constant F32 k = 1.0f;\n", False),
    ("#include <math.h>\n", False),
    ('#include "num.h"\n', False),
    ("F32 f(F32 x)\n{\n    return x;\n}\n", False),
    ("LKS_INLINE F32 f(F32 x)\n{\n    return g(x);\n}\n"
     "LKS_INLINE F32 g(F32 x)\n{\n    return f(x);\n}\n", False),
    ("#pragma OPENCL FP_CONTRACT ON\n", True),
    ("#pragma clang fp contract(fast)\n", True),
    ("#pragma clang fp reassociate(on)\n", True),
    ('#define OPTIONS "-cl-fast-relaxed-math"\n', True),
    ('#define OPTIONS "-w -cl-mad-enable"\n', True),
    ("#define F(x) exp(x)\n", True),
    ("#define F(x) \\\n    mad(x, x, x)\n", True),
    ("#define HALF 0.5\n", True),
]
# What must pass in contract text.
GOOD = [
    "/* exp(x) by mad(), 0.5, long; static const */\n#include \"contract/num.h\"\n",
    body("return lks_exp(x) + lks_log1p(y) * 0.5f - 1e-3f + 0x1p-24f; // sqrt(x)"),
    body("F32 t[32], u[LKS_ROW_LANES], v[2 * 16]; U32 i = 1u; return t[i] + u[2u * i] + v[0];"),
    body("U64 e = 1u; U32 a = (U32)(e >> 34), b = (U32)((U64)a << 32 >> 32); return x;"),
    body("U32 n = 7u / 2u; return lks_select(x > y, x, y) * (F32)(I32)(n >> 31);"),
    body("F32 exp_x = lks_exp(x), max = x; struct lks_row row; return exp_x + max;"),
    "struct pair {\n    F32 a, b;\n    F32 t[8];\n};\n#define LKS_N 3u\n",
    "LKS_INLINE F32 f(F32 x)\n{\n    return g(x);\n}\nLKS_INLINE F32 g(F32 x)\n{\n"
    "    return x;\n}\n",
]


def self_test():
    failures = []
    for text, everywhere in BAD:
        for path in ["cl/contract/bad.h"] + (["cl/op/bad.cl"] if everywhere else []):
            if not check({path: text}):
                failures.append("%s: not rejected:\n%s" % (path, text))
    for text in GOOD:
        for error in check({"cl/contract/good.h": text}):
            failures.append("rejected: %s\n%s" % (error, text))
    if check({"cl/op/good.cl": "float16 f(float16 x)\n{\n    return fma(x, x, (float16)0.5f);\n}\n"}):
        failures.append("vector fma in cl/op rejected")
    if not without_contract({"cl/op/a.cl": '#include "other.h"\n'}) or \
            without_contract({"cl/op/a.cl": '#include "contract/num.h"\n'}):
        failures.append("programs without contract text are not found")
    line = check({"cl/contract/bad.h": "\n/*\n*/\n" + body("return mad(x, y, x);")})[0]
    if not line.startswith("cl/contract/bad.h:6: mad"):
        failures.append("wrong place: " + line)
    return failures


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if sys.argv[1] == "--self-test":
        errors = self_test()
    else:
        texts = read(sys.argv[1])
        errors = check(texts) + without_contract(texts)
        if "cl/contract/num.h" not in texts:
            errors.append("%s: no cl/contract/num.h there" % sys.argv[1])
    for error in errors:
        print(error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
