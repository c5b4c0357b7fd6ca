#!/bin/sh
# Writes requirements.lock: what scoring needs, in the versions that the checks last passed with, and their hashes.
#     deploy/lock.sh            needs uv
set -eu
cd "$(dirname "$0")/.."
{
    echo "# What scoring needs, in exact versions with hashes: pip install --require-hashes -r requirements.lock"
    echo "# Written by deploy/lock.sh from pyproject.toml and requirements-dev.lock; not by hand."
    uv pip compile --quiet pyproject.toml --constraint requirements-dev.lock --generate-hashes --universal \
        --python-version 3.11 --no-header --no-emit-index-url --no-annotate
} >requirements.lock.part
mv requirements.lock.part requirements.lock
