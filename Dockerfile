# The commands of VIEval in a container, for `vieval serve` and for jobs of a Slurm array. It is built from the wheel:
#   python -m pip wheel --no-deps --wheel-dir dist . && docker build --tag vieval .
#   docker run --rm -p 127.0.0.1:8200:8200 -e VIEVAL_SERVE_TOKEN vieval serve --host 0.0.0.0 --reward r=viescore \
#     --model NAME --base-url http://SERVER:8000/v1
#   apptainer build vieval.sif docker-daemon://vieval:latest      and in the job: apptainer run vieval.sif score ...
# Keys come from the environment of the container, and never stand in the image. Its size is some 0.7 GB, by what pip installs
# (530 MB) and its base (130 MB); EXTRAS=http alone has 240 MB less.
FROM python:3.12-slim AS build
ARG EXTRAS=http,tables,filter
COPY dist/vieval-*.whl /dist/
RUN python -m venv /opt/vieval \
    && /opt/vieval/bin/python -m pip install --no-cache-dir --only-binary :all: "$(echo /dist/vieval-*.whl)[$EXTRAS]"

FROM python:3.12-slim
COPY --from=build /opt/vieval /opt/vieval
RUN useradd --uid 1000 --create-home vieval
USER 1000
WORKDIR /home/vieval
EXPOSE 8200
# Docker asks a server for /live, on the port of its flags; a container that runs another command is well as long as it runs
# hadolint ignore=DL3025
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD \
    command=$(tr '\0' ' ' < /proc/1/cmdline); \
    case $command in *" serve "*) ;; *) exit 0 ;; esac; \
    port=$(echo "$command" | sed -nE 's/.* --port[ =]([0-9]+).*/\1/p'); \
    exec /opt/vieval/bin/python -c "import http.client, sys; \
server = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=4); \
server.request('GET', '/live'); sys.exit(server.getresponse().status != 200)" "${port:-8200}"
ENTRYPOINT ["/opt/vieval/bin/vieval"]
