"""Clean root file systems, for scripts/check-image and scripts/check-release. Needs root and debootstrap."""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIRROR = "http://deb.debian.org/debian"
DEVICES = ("null", "zero", "random", "urandom")


@dataclass
class Stage:
    """A root file system, and how its programs are started."""

    place: Path
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    cmd: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    health: str = ""
    mounts: list[Path] = field(default_factory=list)

    def command(self, words: list[str], user: str | None = None) -> list[str]:
        user = self.user if user is None else user
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self.env}
        settings = [f"{name}={value}" for name, value in env.items()]
        inside = ["env", "-i", *settings, "sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *words]
        return ["chroot", f"--userspec={user}:", str(self.place), *inside]

    def run(self, words: list[str], user: str | None = None) -> None:
        subprocess.run(self.command(words, user), check=True)

    def debootstrap(self, suite: str, packages: list[str], mirror: str) -> None:
        """Fills it with a minimal Debian."""
        include = [f"--include={','.join(packages)}"] if packages else []
        words = ["debootstrap", "--variant=minbase", *include, suite, str(self.place), mirror]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def furnish(self) -> None:
        """Gives it what a container has: /proc, devices, shared memory and this machine's network."""
        self.mount("/proc", ["-t", "proc", "proc"])
        for device in DEVICES:
            (self.place / "dev" / device).touch()
            self.mount(f"/dev/{device}", ["--bind", f"/dev/{device}"])
        self.mount("/dev/shm", ["-t", "tmpfs", "tmpfs"])
        for file in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(file, self.place / file.lstrip("/"))

    def toolchain(self, version: str, wanted_by: str) -> None:
        """This machine's Rust, if it is that version, where the published image has it."""
        sysroot = Path(subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip())
        there = subprocess.check_output([str(sysroot / "bin/rustc"), "--version"], text=True)
        if there.split()[1] != version:
            raise SystemExit(f"{wanted_by} wants Rust {version}, this machine has {there}")
        self.mount("/usr/local/rust", ["--bind", "-o", "ro", str(sysroot)])
        self.env["PATH"] = "/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self.env["CARGO_HOME"] = "/usr/local/cargo"
        self.env["RUSTC"] = "/usr/local/rust/bin/rustc"
        # How this machine reaches the registry; a published image would use the network as it is.
        self.inherit("CARGO_NET_OFFLINE", "HTTPS_PROXY", "https_proxy")
        registry = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry"
        if (registry / "cache").is_dir():
            # Crates that were fetched already, by their checksums: as good as fetched again.
            shutil.copytree(registry / "cache", self.place / "usr/local/cargo/registry/cache")
        self.certificates()

    def inherit(self, *names: str) -> None:
        """Takes over variables of this machine, where they are set."""
        self.env.update({name: os.environ[name] for name in names if name in os.environ})

    def certificates(self) -> None:
        """The authorities that this machine trusts."""
        file = Path("/etc/ssl/certs/ca-certificates.crt")
        if file.exists():
            into = self.place / "etc/ssl/certs"
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, into / file.name)

    def mount(self, what: str, options: list[str]) -> None:
        where = self.place / what.lstrip("/")
        if not where.exists():
            where.mkdir(parents=True)
        subprocess.run(["mount", *options, str(where)], check=True)
        self.mounts.append(where)

    def unmount(self) -> None:
        for where in reversed(self.mounts):
            # What stays mounted must not be reached by the removal of the tree around it.
            subprocess.run(["umount", "--lazy", str(where)], check=True)
        self.mounts.clear()


def tracked() -> list[str]:
    """Files of the checkout that git knows."""
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    return [name for name in names if (ROOT / name).is_file()]


def skipped_without_root() -> str | None:
    """Why no root file system can be made here."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        return "skipped: needs root and debootstrap"
    return None
