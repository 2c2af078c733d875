# SPDX-License-Identifier: Apache-2.0
"""What is changed: each mutant is one change of one line. A pure function of a file's text."""

import re

DELETED = "(deleted)"

SWAPS = [
    # comparisons, connectives, conditions
    (r"(?<![<>=!-])>=(?!=)", ">"),
    (r"(?<![<>=!-])>(?![>=])", ">="),
    (r"(?<![<>=!])<=(?!=)", "<"),
    (r"(?<![<>=!])<(?![<=])", "<="),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"\bif \((.*)\) \{$", r"if (!(\1)) {"),
    (r"(?<![\w!])!(?=[\w(])", ""),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    # arithmetic and constants
    (r"(?<=[\w)\]]) \+ (?=[\w(])", " - "),
    (r"(?<=[\w)\]]) - (?=[\w(])", " + "),
    (r" \+= ", " -= "),
    (r" -= ", " += "),
    (r"\+\+", "--"),
    (r"(?<=[ (\[])0(?=[;,)\]])", "1"),
    (r"(?<=[ (\[])1(?=[;,)\]])", "2"),
    (r"pay_money_add\(", "pay_money_sub("),
    (r"pay_money_sub\(", "pay_money_add("),
    (r"\? (.+) : (.+);$", r"? \2 : \1;"),
    # words of the domain
    (r"\bPAY_VERDICT_APPLY\b", "PAY_VERDICT_IGNORE"),
    (r"\bPAY_VERDICT_IGNORE\b", "PAY_VERDICT_REJECT"),
    (r"\bPAY_VERDICT_REJECT\b", "PAY_VERDICT_IGNORE"),
    (r"\bPAY_VERDICT_NEEDS_RECONCILIATION\b", "PAY_VERDICT_IGNORE"),
    (r"\bPAY_EVIDENCE_SYNC_RESPONSE\b", "PAY_EVIDENCE_LOCAL"),
    (r"\bPAY_EVIDENCE_WEBHOOK\b", "PAY_EVIDENCE_SYNC_RESPONSE"),
    (r"\bPAY_EVIDENCE_QUERY\b", "PAY_EVIDENCE_WEBHOOK"),
    (r"\bPAY_EVIDENCE_CONTROLLED\b", "PAY_EVIDENCE_QUERY"),
    # cells of the tables
    (r"\bTO\((\w+)\)", "IGN"),
    (r"\bIGN\b(?!_IF)(?=[,}\s])", "REJ"),
    (r"\bREJ\b(?=[,}\s])", "IGN"),
    (r"\bREC\b(?=[,}\s])", "IGN"),
    (r"\bFUNDS\b(?=[,}\s])", "IGN"),
    (r"\bTO_IF\((\w+), (\w+)\)", r"TO(\1)"),
    (r"\bIGN_IF\((\w+)\)", "IGN"),
    (r"\bNOTE\((\w+)\)", "IGN"),
    (r"\bTO\(SUCCEEDED\)", "TO(PROCESSING)"),
    (r"\bTO\(WON\)", "TO(LOST)"),
    (r"\bTO\(LOST\)", "TO(CLOSED)"),
]

# A whole statement on a line of its own: a call, an assignment, a step.
STATEMENT = re.compile(r"^\s+(?:\(void\))?(?!return\b|break\b|continue\b|goto\b)[A-Za-z_][\w>.\[\]*-]*(?:\(.*\)| [-+|&]?= .+|\+\+|--);$")
# if (!(a == b)) is if (a != b), which is made anyhow.
NEGATED = re.compile(r"if \(!\(.*\)\) \{$")
ONE_COMPARISON = re.compile(r"^\s*if \([^&|=!]* [!=]= [^&|=!]*\) \{$")
NEVER = re.compile(r"PAY_ASSERT|PAY_INVARIANT|static_assert")


def _code(line):
    """The line without its comment, and what is a string in it made harmless, column by column."""
    code = line.split("/*")[0]
    return re.sub(r'"(?:[^"\\]|\\.)*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', code)


def mutants_of(text):
    """(line number, before, after, whole text) of each change, in the order of the lines; a change that comes out of two
    rules is one."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("#", "*", "/*", "//")) or NEVER.search(line):
            continue
        for changed in dict.fromkeys(_changes(line)):
            whole = "\n".join(lines[:number] + [changed or ";"] + lines[number + 1 :])
            yield number + 1, line.strip(), changed.strip() or DELETED, whole


def _changes(line):
    code = _code(line).rstrip()
    for pattern, replacement in SWAPS:
        for match in re.finditer(pattern, code):
            original = re.compile(pattern).match(line, match.start())
            changed = match.expand(replacement)
            if original and original.end() == match.end():  # with its strings
                changed = original.expand(replacement)
            result = line[: match.start()] + changed + line[match.end() :]
            if result != line and not (NEGATED.match(result.strip()) and ONE_COMPARISON.search(line)):
                yield result
    if STATEMENT.match(code):
        yield ""
