#!/bin/sh
# Writes requirements.lock: what scoring, the command line and the service need, in the versions that the checks last
# passed with, and their hashes.
#     deploy/lock.sh            needs uv
# The project is read as an editable installation, which does not require the packages of the embedded models.
set -eu
cd "$(dirname "$0")/.."
{
    echo "# What scoring, the command line and the service need, in exact versions with hashes:"
    echo "#     pip install --require-hashes -r requirements.lock"
    echo "# Written by deploy/lock.sh from pyproject.toml and requirements-dev.lock; not by hand."
    echo '-e .[cli,serve]' | uv pip compile --quiet - --constraint requirements-dev.lock --generate-hashes --universal \
        --python-version 3.11 --no-header --no-emit-index-url --no-annotate --no-emit-package groundwire
} >requirements.lock.part
mv requirements.lock.part requirements.lock
