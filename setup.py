"""All settings are in pyproject.toml; here is only what it cannot say: one file beside the packages.

`selfplay_environments.pth` goes into the folder of installed packages, where Python reads it when it starts (see
`selfplay_environments.py`); also for an editable install, whose packages stay where they are.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HOOK = "selfplay_environments.pth"


class BuildWithHook(build_py):
    def run(self) -> None:
        super().run()
        folder = self.build_lib
        if self.editable_mode:  # the wheel then takes nothing from the build, but is laid out for installing
            folder = self.distribution.get_command_obj("install").install_purelib
        Path(folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).with_name(HOOK), Path(folder) / HOOK)

    def get_source_files(self) -> list[str]:  # so that a source distribution has it too
        return [*super().get_source_files(), HOOK]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), str(Path(self.build_lib) / HOOK)]


setup(cmdclass={"build_py": BuildWithHook})
