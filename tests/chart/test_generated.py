# SPDX-License-Identifier: Apache-2.0
"""What is generated is current, and what stands in two places is the same."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

from chart import CHART, ROOT

BIN = pathlib.Path(os.environ.get("PAY_BUILD_DIR", ROOT / "build" / "dev")).resolve() / "bin"


def generate(script, *args):
    return subprocess.run([sys.executable, str(script), *args], capture_output=True, text=True, timeout=60)


def test_readme_and_settings_are_current():
    done = generate(ROOT / "deploy/helm/generate.py", "--bin", str(BIN), "--check")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}: run deploy/helm/generate.py --bin {BIN}"


def test_the_check_sees_a_change(tmp_path):
    copy = tmp_path / "deploy" / "helm"
    shutil.copytree(ROOT / "deploy/helm", copy)
    script, values, settings = copy / "generate.py", copy / "payfact/values.yaml", copy / "payfact/files/settings.yaml"
    good = values.read_text()
    values.write_text(good.replace("partitions: 12", "partitions: 13"))
    assert "README.md is not current" in generate(script, "--check").stdout
    values.write_text(good + "\nmore: 1\n")
    assert "says nothing about more" in generate(script, "--check").stderr
    values.write_text(good)
    settings.write_text(settings.read_text().replace("  - TURN_MS_MAX\n", "", 1))
    assert "settings.yaml is not current" in generate(script, "--check", "--bin", str(BIN)).stdout
    assert generate(script, "--bin", str(BIN)).returncode == 0
    assert generate(script, "--check", "--bin", str(BIN)).returncode == 0


def test_the_version_is_the_programs():
    version = re.search(r"project\(payfact VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == version
    assert f"## [{chart['version']}]" in (CHART / "CHANGELOG.md").read_text()


def test_every_login_has_its_role_in_the_schema():
    roles = "".join(p.read_text() for p in (ROOT / "schemas/sql").glob("*.sql"))
    users = yaml.safe_load((CHART / "values.yaml").read_text())["postgres"]["users"]
    for name in users.keys() - {"migrate"}:
        assert f"'payfact_{name}'" in roles
