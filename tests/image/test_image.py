# SPDX-License-Identifier: Apache-2.0
"""The image of deploy/images/build: made twice, unpacked, and every program run inside it as its user."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PAY_BUILD_DIR", ROOT / "build" / "dev")).resolve()
PROGRAMS = ("payfact-ingest", "payfact-processor", "payfact-publisher", "payfact-recovery", "payfactctl")
USER = 10001


def make(out, *more):
    command = [ROOT / "deploy/images/build", "--build-dir", BUILD, *more, out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return out


class Image:
    """An unpacked OCI archive of one layer."""

    def __init__(self, archive, folder):
        with tarfile.open(archive) as tar:
            tar.extractall(folder / "oci", filter="data")
        self.index = json.loads((folder / "oci/index.json").read_text())["manifests"][0]
        manifest = self.blob(folder, self.index["digest"])
        self.config = self.blob(folder, manifest["config"]["digest"])
        (self.layer,) = [entry["digest"] for entry in manifest["layers"]]
        self.tree = folder / "tree"
        with tarfile.open(folder / "oci/blobs" / self.layer.replace(":", "/")) as tar:
            self.members = tar.getmembers()
            tar.extractall(self.tree, filter="fully_trusted")

    @staticmethod
    def blob(folder, digest):
        return json.loads((folder / "oci/blobs" / digest.replace(":", "/")).read_text())

    def run(self, *words):
        """In the image alone: no file of this machine can be seen."""
        command = ["/usr/sbin/chroot", f"--userspec={USER}:{USER}", self.tree, *words]
        return subprocess.run(command, env={}, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    assert shutil.which("buildah"), "needs buildah: run tests/support/stack/apt-packages.sh --image"
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    for parent in list(folder.parents)[:2]:  # pytest closes its folders to others; the image's user is one
        parent.chmod(0o755)
    return Image(make(folder / "a.tar"), folder)


def version():
    return re.search(r"project\(payfact VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_inside(image, program):
    done = image.run(f"/usr/bin/{program}", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{program} {version()}"


def test_nothing_but_the_image_is_used(image):
    """The same run fails when a library is missing: it does not come from this machine."""
    library = next(p for p in image.tree.rglob("librdkafka.so.1"))
    away = library.with_suffix(".away")
    library.rename(away)
    try:
        done = image.run("/usr/bin/payfact-processor", "--version")
        assert done.returncode == 127 and "librdkafka" in done.stderr
    finally:
        away.rename(library)


def test_the_image_says_what_it_is(image):
    config = image.config["config"]
    assert config["User"] == f"{USER}:{USER}"
    assert config["Labels"]["org.opencontainers.image.version"] == version()
    assert image.index["annotations"]["org.opencontainers.image.ref.name"] in (version(), f"localhost/payfact:{version()}")
    assert "Entrypoint" not in config and config["Cmd"] == ["/usr/bin/payfactctl", "--help"]
    assert image.run(*config["Cmd"]).returncode == 0


def test_what_is_inside(image):
    names = {p.name for p in (image.tree / "usr/bin").iterdir()}
    assert names == set(PROGRAMS)  # no shell, no tools, no test programs
    for name in ("etc/ssl/certs/ca-certificates.crt", "usr/share/payfact/schemas/sql/0001_schema.sql",
                 "usr/share/payfact/schemas/avro/PaymentEvent.avsc", "usr/share/doc/payfact/LICENSE"):
        assert (image.tree / name).stat().st_size > 0
    packages = (image.tree / "usr/share/doc/payfact/packages.txt").read_text().splitlines()
    assert any(line.startswith("librdkafka1 ") for line in packages)
    for line in packages:
        assert (image.tree / "usr/share/doc" / line.split()[0] / "copyright").exists()


def test_nothing_inside_can_raise_rights_or_be_written(image):
    for member in image.members:
        assert member.uid == 0 and member.gid == 0 and not member.mode & (stat.S_ISUID | stat.S_ISGID), member.name
        assert member.issym() or member.name.strip("./") == "tmp" or not member.mode & 0o022, member.name


def test_a_second_build_gives_the_same_layer(image, tmp_path):
    assert Image(make(tmp_path / "b.tar", "--name", "registry.example/payfact:x"), tmp_path).layer == image.layer
