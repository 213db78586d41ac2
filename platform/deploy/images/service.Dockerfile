# One image for all processes but the engines; the arguments select the process.
#
#   docker build -f platform/deploy/images/service.Dockerfile --build-arg PYTHON=python@sha256:... .
#
# PYTHON: a slim image of Python 3.11; use a digest for reproducible builds.
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS packages
RUN python -m venv /opt/caret
COPY platform/locks/service.txt /tmp/
# font-roboto has no wheel: its build tools stay in this stage.
RUN /opt/caret/bin/pip install --no-cache-dir --no-deps --require-hashes \
      --only-binary=:all: --no-binary=font-roboto -r /tmp/service.txt \
    && /opt/caret/bin/pip uninstall --yes pip setuptools

FROM ${PYTHON}
# Numeric IDs, because Kubernetes cannot check that a name is not root.
RUN groupadd --gid 10001 caret && useradd --uid 10001 --gid 10001 --no-create-home caret
COPY --from=packages /opt/caret /opt/caret
WORKDIR /app
COPY manage.py LICENSE ./
COPY platform/caret platform/caret
# The console's help shows the documents for customers.
COPY platform/docs platform/docs
COPY inference inference
COPY tenants tenants
COPY console console
# Compile here: the image is read-only at run time.
RUN /opt/caret/bin/python -m compileall -q platform inference tenants console
ENV PATH=/opt/caret/bin:$PATH \
    PYTHONPATH=/app:/app/platform \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    CARET_HOME=/var/lib/caret
USER 10001:10001
ENTRYPOINT ["python"]
CMD ["manage.py", "help"]
