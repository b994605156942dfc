# The decision service. Mount a model at /model, and keep /data (or name a database).
#   docker build -t shortlist . && docker run -p 127.0.0.1:8000:8000 -v "$PWD/model:/model:ro" shortlist
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY constraints ./constraints
COPY src ./src
RUN python -m venv /opt/shortlist \
    && /opt/shortlist/bin/pip install --no-cache-dir --constraint constraints/tested.txt ".[service]"

FROM python:3.12-slim
# LightGBM needs OpenMP.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /data shortlist
COPY --from=build /opt/shortlist /opt/shortlist
ENV PATH=/opt/shortlist/bin:$PATH \
    SHORTLIST_DATABASE=/data/shortlist.db \
    SHORTLIST_HOST=0.0.0.0 \
    NUMBA_CACHE_DIR=/data/.numba \
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
USER shortlist
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["shortlist"]
# Others can reach a container, so every request needs a key. Make one while it runs:
#   docker exec ... shortlist serve keys decide
CMD ["serve", "/model", "--count", "50", "--period", "day"]
