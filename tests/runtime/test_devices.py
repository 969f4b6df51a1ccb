"""Tensors that say cuda and live on the CPU: in one process of its own, since the hook stays."""

import pytest

SCRIPT = """
import copy, sys, threading
import numpy as np
import torch

x = torch.randn(4, 4, device="cuda")
assert x.is_cuda and x.device.type == "cuda" and not x.is_cpu
assert (x @ x).relu().sum(-1).device == x.device
c = torch.ones(3)
d = c.cuda()
d += 1
assert c[0] == 1 and d.is_cuda and not c.is_cuda and not d.cpu().is_cuda
assert torch.zeros(3, device=x.device).is_cuda and torch.zeros_like(x).is_cuda and x.new_ones(2).is_cuda
m = torch.nn.Linear(4, 4).cuda()
m(x).sum().backward()
assert m.weight.is_cuda and m.weight.grad.is_cuda
assert torch.nn.Linear(4, 4, device="cuda").half().weight.is_cuda
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="cuda").is_cuda))
thread.start()
thread.join()
assert seen == [True]
torch.set_default_device("cuda")
assert torch.ones(2).is_cuda
torch.set_default_device("cpu")
assert not torch.ones(2).is_cuda
with torch.device("cuda"):
    assert torch.empty(3).is_cuda
torch.randn(3, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda")
assert x.to(torch.float16).is_cuda and not x.to("cpu").is_cuda and c.to(x).is_cuda and c.to(0).is_cuda
n = np.ones(3, dtype=np.float32)
torch.from_numpy(n).cuda().zero_()
torch.as_tensor(n, device="cuda").zero_()
assert n[0] == 1
assert copy.deepcopy(x).is_cuda and torch.cat([x, x]).is_cuda and x.split(2)[0].is_cuda and x.T.is_cuda
assert "device='cuda:0'" in repr(x) and torch.tensor([1], device="cuda:0").get_device() == 0
assert torch.cuda.get_device_capability() == (9, 0)
try:
    torch.testing.assert_close(x, x.cpu())
except AssertionError as error:
    assert "device" in str(error)
else:
    raise SystemExit("a comparison across devices must fail, as on a GPU")


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        ctx.save_for_backward(t)
        return t * 2

    @staticmethod
    def backward(ctx, gradient):
        (t,) = ctx.saved_tensors
        assert t.is_cuda and gradient.is_cuda and torch.ones(1, device="cuda").is_cuda
        return gradient * 2


assert x.type() == "torch.cuda.FloatTensor" and x.half().type(torch.cuda.FloatTensor).is_cuda
try:
    x.numpy()
except TypeError as error:
    assert "cpu()" in str(error)
else:
    raise SystemExit("numpy takes no tensor of a GPU")
assert x.cpu().numpy().shape == (4, 4) and np.asarray(x.cpu()).shape == (4, 4)
assert torch.compile(lambda t: t * 2)(x).is_cuda
assert torch.compile(mode="max-autotune")(lambda t: t * 2)(x).is_cuda
state = torch.cuda.get_rng_state()
first = torch.randn(3, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(first, torch.randn(3, device="cuda"))
with torch.random.fork_rng(devices=[0]):
    torch.randn(3, device="cuda")
assert torch._C._cuda_getDevice() == 0 and torch._C._cuda_getCurrentRawStream(0) == 0
assert torch.accelerator.current_accelerator().type == "cuda"
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]) as profiled:
    x @ x
assert profiled.key_averages()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
end.record(torch.cuda.current_stream())
torch.cuda.synchronize()
assert begin.elapsed_time(end) >= 0
assert torch.cuda.get_device_properties("cuda").multi_processor_count > 0 and torch.cuda.memory_summary()
try:
    torch.cuda.CUDAGraph()
except NotImplementedError as error:
    assert "not CUDA graphs" in str(error)
import torch._dynamo  # compares torch's own functions with its tables

leaf = x.clone().requires_grad_()
Double.apply(leaf).sum().backward()
assert leaf.grad.is_cuda and bool((leaf.grad == 2).all())
with torch.autocast("cuda", dtype=torch.float16), torch.cuda.stream(torch.cuda.Stream()):
    x @ x
"""


def test_cuda_tensors_live_on_the_cpu(shell, tmp_path):
    (tmp_path / "s.py").write_text(SCRIPT)
    done = shell("run", "s.py")
    assert done.code == 0, done.err


@pytest.mark.slow
def test_load_ext_does_the_same(shell, tmp_path):
    (tmp_path / "s.py").write_text(
        "from IPython.core.interactiveshell import InteractiveShell\nshell = InteractiveShell.instance()\nshell.run_line_magic('load_ext', 'tilelab')\n"
        "import torch\nassert torch.ones(3, device='cuda').is_cuda\nprint('ok')\n"
    )
    done = shell("s.py", python=True)
    assert done.out.strip().endswith("ok"), done.err
