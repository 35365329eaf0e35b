"""One thread a test process: the tests run on all cores already."""

import torch

torch.set_num_threads(1)
