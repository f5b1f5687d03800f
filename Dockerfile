# The engine on a machine with NVIDIA GPUs: docker build -t lpzero . && docker run --gpus all lpzero tables
FROM pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime
WORKDIR /opt/lpzero
COPY pyproject.toml setup.cfg setup.py README.md LICENSE ./
COPY docs docs
COPY lpzero lpzero
COPY primitives primitives
COPY spaces spaces
# torch is in the image already; pip keeps it.
RUN pip install --no-cache-dir '.[dashboard,hf]'
WORKDIR /work
ENTRYPOINT ["lpzero"]
