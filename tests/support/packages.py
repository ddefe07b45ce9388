"""Programs of Debian packages that are better not installed: they would start servers."""

import os
import shutil
import subprocess

from selvage import TOP


def program(name, package):
    """The path of a program: in $PATH, or of the package, unpacked below build/. None, said in a line,
    if it is not to be had."""
    if found := shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
        return found
    folder = os.path.join(TOP, "build", "packages", package)

    def unpacked():
        return shutil.which(name, path=f"{folder}/usr/bin:{folder}/usr/sbin")

    if not unpacked():
        os.makedirs(folder, exist_ok=True)
        try:
            subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True,
                           capture_output=True, timeout=120)
            for one in os.listdir(folder):
                if one.endswith(".deb"):
                    subprocess.run(["dpkg", "-x", one, "."], cwd=folder, check=True, timeout=120)
        except (OSError, subprocess.SubprocessError):
            pass
    if not unpacked():
        print(f"no {name} (Debian's {package}) to be had: what needs it is left out")
    return unpacked()
