# One image for every process of the platform: the wheel with its pinned packages, a JVM and Spark's jars.
# To install a wheel that is built already: make wheel && docker build --build-context wheel=dist .
FROM rust:1.95.0-bookworm AS wheel
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /build
WORKDIR /source
COPY constraints.txt ./
RUN /build/bin/pip install --no-cache-dir --constraint constraints.txt maturin
COPY pyproject.toml README.md LICENSE ./
COPY native native
COPY factory factory
COPY spark_udfs spark_udfs
COPY assets assets
COPY jobs jobs
COPY blender blender
RUN /build/bin/maturin build --release --out /wheel

FROM python:3.11.7-slim-bookworm
# Spark's scripts call ps.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home factory \
    && install --directory --owner factory /var/lib/factory /opt/factory /opt/factory/cache
COPY constraints.txt docker/workspace.yaml /opt/factory/
COPY --from=wheel /wheel /opt/factory/wheel
RUN pip install --no-cache-dir --constraint /opt/factory/constraints.txt \
    "corpus-factory[pipeline,classifiers,html,postgres] @ file://$(ls /opt/factory/wheel/*.whl)"
ENV FACTORY_HOME=/var/lib/factory \
    FACTORY_CACHE=/opt/factory/cache
USER factory
# Jars are part of the image: a container fetches nothing when it starts.
RUN python -m factory.spark --all
WORKDIR /var/lib/factory
CMD ["factory", "--help"]
