"""The layers of model files in PyTorch's words; torch_net.py runs them.

A function that is made of straight pieces (relu, a maximum) has a piece for each element: which one
its input lies on. `piece_of` reads it off what the layer gave (or, of a pool, took), `on_piece`
computes the layer on given pieces. So two computations can be compared that rounding has put on
different sides of a kink.
"""
import numpy as np
import torch
import torch.nn.functional as F


class Value:
    """A tensor and whether it is an image in NCHW."""

    def __init__(self, t, image=False):
        self.t, self.image = t, image

    def nchw(self):
        return self.t if self.image else self.t.permute(0, 3, 1, 2)

    def plain(self):
        return self.t.permute(0, 2, 3, 1) if self.image else self.t


INF = float("inf")


def number(v):
    """A constant of the file as both hold it, also where the rest is double."""
    return float(np.float32(float(v)))


def pair(v):
    return tuple(v) if isinstance(v, list) else (v, v)


def pads(keys, x, kernel, stride, dilation):
    """top, bottom, left, right."""
    p = keys.get("pad", 0)
    if p == "same":
        out = []
        for size, k, s, d in zip(x.shape[2:], kernel, stride, dilation):
            total = max(0, ((size + s - 1) // s - 1) * s + d * (k - 1) + 1 - size)
            out += [total // 2, total - total // 2]
        return out
    p = p if isinstance(p, list) else [p, p]
    return p if len(p) == 4 else [p[0], p[0], p[1], p[1]]


UNARY = {
    "abs": torch.abs, "ceil": torch.ceil, "cos": torch.cos, "erf": torch.erf, "exp": torch.exp,
    "floor": torch.floor, "gelu": F.gelu, "hard_swish": F.hardswish,
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3))),
    "log": torch.log, "mish": lambda x: x * torch.tanh(F.softplus(x)), "neg": torch.neg,
    "reciprocal": torch.reciprocal, "round": torch.round, "selu": F.selu,
    "sigmoid": torch.sigmoid, "sign": torch.sign, "silu": F.silu, "sin": torch.sin,
    "softplus": F.softplus, "softsign": F.softsign, "sqrt": torch.sqrt, "square": torch.square,
    "tanh": torch.tanh, "stop_gradient": torch.Tensor.detach,
}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
          "minimum": torch.minimum, "maximum": torch.maximum, "pow": torch.pow}
NUMBER = {"add": "value", "sub": "value", "mul": "by", "div": "by", "pow": "exponent"}


# ---- straight pieces ----

def limits(l):
    """(low, high, slope below low) of the functions that are straight between two limits."""
    k = l.keys
    return {"relu": (0.0, INF, 0.0), "relu6": (0.0, 6.0, 0.0),
            "leaky_relu": (0.0, INF, number(k.get("slope", 0.01))),
            "clamp": (number(k.get("low", -INF)), number(k.get("high", INF)), 0.0)}.get(l.kind)


def window(l, x):
    k = l.keys
    kernel = pair(k["kernel"])
    stride, dilation = pair(k.get("stride", k["kernel"])), pair(k.get("dilation", 1))
    top, bottom, left, right = pads(k, x, kernel, stride, dilation)
    assert (top, left) == (bottom, right)
    return kernel, stride, (top, left), dilation, k.get("ceil", False)


def has_pieces(l):
    return l.kind == "maxpool" or limits(l) is not None


def piece_of(l, value):
    """Of what the layer gave; a pool: of what it took."""
    if l.kind == "maxpool":
        t = value.nchw().contiguous()
        return F.max_pool2d(t, *window(l, t), return_indices=True)[1]
    low, high, _ = limits(l)
    return (value.t > low).to(torch.int8) + (value.t >= high).to(torch.int8)


def limited(l, x, piece):
    low, high, slope = limits(l)
    t = x.t
    if piece is None and slope:
        return F.leaky_relu(t, slope)
    if piece is None:
        return F.relu(t) if (low, high) == (0.0, INF) else t.clamp(low, high)
    below = t * slope if slope else torch.full_like(t, max(low, -3e38))
    above = torch.full_like(t, min(high, 3e38))
    return torch.where(piece == 1, t, torch.where(piece == 0, below, above))


def maxpool(l, x, piece):
    t = x.nchw()
    if piece is None:
        return Value(F.max_pool2d(t, *window(l, t)), True)
    return Value(t.flatten(2).gather(2, piece.flatten(2)).view(piece.shape), True)


# ---- layers with parameters ----

def image(net, t):
    """PyTorch sums over a batch in double if an image is contiguous, and in float if its channels lie
    innermost, as they do behind a convolution with 1 x 1 kernels or of one channel."""
    return Value(t.contiguous() if net.contiguous else t, True)


def conv2d(net, l, x):
    t, k = x.nchw(), l.keys
    kernel, stride = pair(k["kernel"]), pair(k.get("stride", 1))
    dilation, groups = pair(k.get("dilation", 1)), k.get("groups", 1)
    w = net.param(l, "weight", (k["out"], *kernel, t.shape[1] // groups), (0, 3, 1, 2))
    b = net.param(l, "bias", (k["out"],)) if k.get("bias", True) else None
    top, bottom, left, right = pads(k, t, kernel, stride, dilation)
    if (top, left) != (bottom, right):
        t, top, left = F.pad(t, (left, right, top, bottom)), 0, 0
    return image(net, F.conv2d(t, w, b, stride, (top, left), dilation, groups))


def conv_transpose2d(net, l, x):
    t, k = x.nchw(), l.keys
    kernel, stride = pair(k["kernel"]), pair(k.get("stride", 1))
    groups, out = k.get("groups", 1), k["out"]
    w = net.param(l, "weight", (t.shape[1], *kernel, out // groups), (0, 3, 1, 2))
    b = net.param(l, "bias", (out,)) if k.get("bias", True) else None
    return image(net, F.conv_transpose2d(t, w, b, stride, pair(k.get("pad", 0)),
                                         pair(k.get("output_pad", 0)), groups,
                                         pair(k.get("dilation", 1))))


def linear(net, l, x):
    t = x.plain()
    t = t.flatten(1) if l.kind == "dense" else t
    w = net.param(l, "weight", (l.keys["out"], t.shape[-1]))
    b = net.param(l, "bias", (l.keys["out"],)) if l.keys.get("bias", True) else None
    return Value(F.linear(t, w, b))


def embedding(net, l, x):
    return Value(F.embedding(x.t, net.param(l, "weight", (l.keys["vocabulary"], l.keys["out"]))))


def positions(net, l, x):
    return Value(x.plain() + net.param(l, "weight", tuple(x.plain().shape[1:])))


def affine(net, l, c):
    return net.param(l, "weight", (c,)), net.param(l, "bias", (c,))


def eps(l):
    return number(l.keys.get("eps", 1e-5))


def batch_norm(net, l, x):
    t = x.t if x.image or x.t.dim() == 2 else x.t.movedim(-1, 1)
    t = t.contiguous() if net.contiguous else t
    y = F.batch_norm(t, None, None, *affine(net, l, t.shape[1]), True, 0.1, eps(l))
    return Value(y if x.image or x.t.dim() == 2 else y.movedim(1, -1), x.image)


def group_norm(net, l, x):
    t = x.nchw()
    groups = l.keys["groups"] if l.kind == "group_norm" else t.shape[1]
    return Value(F.group_norm(t, groups, *affine(net, l, t.shape[1]), eps(l)), True)


def layer_norm(net, l, x):
    t = x.plain()
    return Value(F.layer_norm(t, t.shape[-1:], *affine(net, l, t.shape[-1]), eps(l)))


def channel(net, l, x):
    t = x.plain()
    p = net.param(l, "bias" if l.kind == "bias" else "weight", t.shape[-1:])
    return Value(t + p if l.kind == "bias" else t * p if l.kind == "scale" else
                 torch.where(t > 0, t, t * p))


# ---- layers without ----

def avgpool(net, l, x):
    t = x.nchw()
    kernel, stride, pad, _, ceil = window(l, t)
    return Value(F.avg_pool2d(t, kernel, stride, pad, ceil, l.keys.get("count_pad", False)), True)


def global_avgpool(net, l, x):
    return Value(x.nchw().mean((2, 3), keepdim=True), True)


def global_maxpool(net, l, x):
    return Value(x.nchw().amax((2, 3), keepdim=True), True)


def dropout(net, l, x):
    if net.chance is None:
        return x
    return Value(net.chance.dropout(l, x.plain(), l.keys.get("p", 0.5)))


def reduced(net, l, x):
    t = x.plain()
    axes = l.keys.get("axes", list(range(t.dim() - 1)))
    axes = [a + 1 if a >= 0 else a for a in axes]
    y = (torch.sum if l.kind == "sum" else torch.mean)(t, axes, keepdim=l.keys.get("keep", False))
    return Value(y if y.dim() > 1 else y[:, None])


def softmax(net, l, x):
    t = x.plain()
    if l.keys.get("causal", False):
        rows, columns = t.shape[-2:]
        t = t.masked_fill(torch.ones(rows, columns, device=t.device).triu(1).bool(), -float("inf"))
    return Value((F.softmax if l.kind == "softmax" else F.log_softmax)(t, -1))


def reshape(net, l, x):
    t = x.plain()
    return Value(t.reshape(len(t), *(t.shape[i + 1] if d == 0 else d
                                     for i, d in enumerate(l.keys["shape"]))))


def transpose(net, l, x):
    return Value(x.plain().permute(0, *(k + 1 for k in l.keys["order"])))


def axis_of(l, rank, default):
    """Of a tensor whose sample has `rank` axes."""
    axis = l.keys.get("axis", default)
    return axis + 1 if axis >= 0 else axis + rank + 1


def listed(l, key, rank):
    """The numbers of `key`, one an axis; with `axis` one alone is given."""
    given = l.keys.get(key, 0)
    if "axis" in l.keys:
        out = [0] * rank
        out[axis_of(l, rank, 0) - 1] = given
        return out
    return (given if isinstance(given, list) else [given] * rank) + [0] * rank


def sliced(net, l, x):
    t = x.plain()
    rank = t.dim() - 1
    if "step" in l.keys:
        raise NotImplementedError("step of slice")
    for axis, begin, end in zip(range(1, rank + 1), listed(l, "begin", rank),
                                listed(l, "end", rank)):
        t = t.narrow(axis, begin % t.shape[axis], (end - 1) % t.shape[axis] + 1
                     - begin % t.shape[axis])
    return Value(t)


def select(net, l, x):
    t = x.plain()
    return Value(t.select(axis_of(l, t.dim() - 1, 0), l.keys["index"]))


def pad(net, l, x):
    t = x.plain()
    rank = t.dim() - 1
    before, after = listed(l, "before", rank)[:rank], listed(l, "after", rank)[:rank]
    if l.keys.get("mode", "constant") != "constant":
        raise NotImplementedError("mode of pad")
    sizes = [n for b, a in zip(reversed(before), reversed(after)) for n in (b, a)]
    return Value(F.pad(t, sizes, value=number(l.keys.get("value", 0))))


def upsample(net, l, x):
    if l.keys.get("mode", "nearest") != "nearest":
        raise NotImplementedError("mode of upsample")
    return Value(F.interpolate(x.nchw(), scale_factor=l.keys["factor"], mode="nearest"), True)


def depth_to_space(net, l, x):
    t, b = x.plain(), l.keys["block"]
    n, h, w, c = t.shape
    t = t.reshape(n, h, w, b, b, c // (b * b)).permute(0, 1, 3, 2, 4, 5)
    return Value(t.reshape(n, h * b, w * b, c // (b * b)))


def space_to_depth(net, l, x):
    t, b = x.plain(), l.keys["block"]
    n, h, w, c = t.shape
    t = t.reshape(n, h // b, b, w // b, b, c).permute(0, 1, 3, 2, 4, 5)
    return Value(t.reshape(n, h // b, w // b, b * b * c))


ONE = {
    "conv2d": conv2d, "conv_transpose2d": conv_transpose2d, "dense": linear, "linear": linear,
    "embedding": embedding, "positions": positions, "batch_norm": batch_norm,
    "group_norm": group_norm, "instance_norm": group_norm, "layer_norm": layer_norm,
    "scale": channel, "bias": channel, "prelu": channel, "avgpool": avgpool,
    "global_avgpool": global_avgpool, "global_maxpool": global_maxpool, "dropout": dropout,
    "sum": reduced, "mean": reduced, "softmax": softmax, "log_softmax": softmax,
    "flatten": lambda net, l, x: Value(x.plain().flatten(1)),
    "reshape": reshape, "transpose": transpose, "slice": sliced, "select": select, "pad": pad,
    "upsample": upsample, "depth_to_space": depth_to_space, "space_to_depth": space_to_depth,
}


# ---- layers of none or several values ----

def aligned(values):
    """Tensors of one rank, and whether they are images: lockstep aligns shapes at the channels."""
    if all(v.image for v in values):
        return [v.t for v in values], True
    plain = [v.plain() for v in values]
    rank = max(t.dim() for t in plain)
    return [t.reshape(len(t), *[1] * (rank - t.dim()), *t.shape[1:]) for t in plain], False


def several(net, l, values):
    if l.kind in BINARY:
        parts, image = aligned(values)
        y = parts[0]
        for p in parts[1:]:
            y = BINARY[l.kind](y, p)
        return Value(y, image)
    if l.kind == "concat":
        parts, image = aligned(values)
        axis = axis_of(l, parts[0].dim() - 1, -1)
        return Value(torch.cat(parts, {1: 2, 2: 3, 3: 1}[axis] if image else axis), image)
    if l.kind == "stack":
        parts = [v.plain() for v in values]
        return Value(torch.stack(parts, axis_of(l, parts[0].dim(), 0)))
    if l.kind == "matmul":
        a, b = (v.plain() for v in values)
        a = a.transpose(-1, -2) if l.keys.get("transpose_a", False) else a
        b = b.transpose(-1, -2) if l.keys.get("transpose_b", False) else b
        return Value(a @ b)
    if l.kind == "gradient":
        of, by = values
        return Value(torch.autograd.grad(of.t.sum(), by.t, create_graph=True)[0], by.image)
    raise NotImplementedError("layer " + l.kind)


def run(net, l, values, samples):
    k = l.keys
    if l.kind == "random":
        return Value(net.chance.random(l, (samples, *k["shape"])).to(net.dtype))
    if l.kind == "constant":
        return Value(torch.full((samples, *k["shape"]), number(k.get("value", 0)),
                                dtype=net.dtype, device=net.device))
    if len(values) > 1:
        return several(net, l, values)
    x = values[0]
    piece = net.pieces[l.name] if net.pieces is not None and has_pieces(l) else None
    if l.kind == "maxpool":
        return maxpool(l, x, piece)
    if limits(l) is not None:
        return Value(limited(l, x, piece), x.image)
    if l.kind in UNARY:
        return Value(UNARY[l.kind](x.t), x.image)
    if l.kind in BINARY:
        return Value(BINARY[l.kind](x.t, number(k[NUMBER[l.kind]])), x.image)
    if l.kind not in ONE:
        raise NotImplementedError("layer " + l.kind)
    return ONE[l.kind](net, l, x)
