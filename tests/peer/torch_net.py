"""A model file as a PyTorch network, to be compared with: layers, blocks and names as
src/model/model_layers.c reads them, parameters in lockstep's layout.

Images are NCHW inside (what PyTorch is fastest with) and go back to (height, width, channels) where
a layer looks at the order of elements. A layer that is not here is an error.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F
import yaml

PREFIX = {"conv2d": "conv", "conv_transpose2d": "conv_transpose"}


class Layer:
    def __init__(self, kind, keys, name, sources, owner):
        self.kind, self.keys, self.name, self.sources, self.owner = kind, keys, name, sources, owner


def fill_in(node, arguments):
    """The layers of a block with `$name` replaced."""
    if isinstance(node, dict):
        return {k: fill_in(v, arguments) for k, v in node.items()}
    if isinstance(node, list):
        return [fill_in(v, arguments) for v in node]
    return arguments[node[1:]] if isinstance(node, str) and node[:1] == "$" else node


class Reader:
    """Expands blocks; `names` are layers and uses of blocks, each with the value it means."""

    def __init__(self, model):
        self.blocks, self.layers, self.names = model.get("blocks") or {}, [], {}
        self.scope(model["layers"], "", "input", [])

    def look_up(self, name, prefixes):
        for prefix in reversed(prefixes):
            if prefix + name in self.names:
                return self.names[prefix + name]
        raise KeyError(name)

    def scope(self, items, prefix, start, outer):
        prefixes, last, count, uses = outer + [prefix], start, {}, 0
        find = lambda name: ("input" if name == "input" else
                             start if name == "in" and outer else self.look_up(name, prefixes))
        for item in items:
            kind, keys = (item, {}) if isinstance(item, str) else next(iter(item.items()))
            sources = keys.get("from", None)
            sources = [last] if sources is None else [
                find(s) for s in (sources if isinstance(sources, list) else [sources])]
            if kind == "block":
                uses += 1
                last = self.use(keys, prefix + keys.get("name", "block%d" % uses), sources[0],
                                prefixes)
                continue
            count[kind] = count.get(kind, 0) + 1
            name = prefix + keys.get("name", PREFIX.get(kind, kind) + str(count[kind]))
            owner = find(keys["share"]) if "share" in keys else name
            owner = next((l.owner for l in self.layers if l.name == owner), owner)
            self.layers.append(Layer(kind, keys, name, sources, owner))
            self.names[name] = last = name
        return last

    def use(self, keys, name, start, prefixes):
        block = self.blocks[keys["use"]]
        arguments = {**(block.get("args") or {}), **keys}
        times = keys.get("times", 1)
        for i in range(1, times + 1):
            one = name if times == 1 else "%s_%d" % (name, i)
            start = self.scope(fill_in(block["layers"], arguments), one + "_", start, prefixes)
            self.names[one] = start
        self.names[name] = start
        return start


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
    "relu": F.relu, "abs": torch.abs, "ceil": torch.ceil, "cos": torch.cos, "erf": torch.erf,
    "exp": torch.exp, "floor": torch.floor, "gelu": F.gelu, "hard_swish": F.hardswish,
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3))),
    "log": torch.log, "mish": lambda x: x * torch.tanh(F.softplus(x)), "neg": torch.neg,
    "reciprocal": torch.reciprocal, "relu6": F.relu6, "round": torch.round, "selu": F.selu,
    "sigmoid": torch.sigmoid, "sign": torch.sign, "silu": F.silu, "sin": torch.sin,
    "softplus": F.softplus, "softsign": F.softsign, "sqrt": torch.sqrt, "square": torch.square,
    "tanh": torch.tanh, "stop_gradient": torch.Tensor.detach,
}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
          "minimum": torch.minimum, "maximum": torch.maximum}


class Value:
    """A tensor and whether it is an image in NCHW."""

    def __init__(self, t, image=False):
        self.t, self.image = t, image

    def nchw(self):
        return self.t if self.image else self.t.permute(0, 3, 1, 2)

    def plain(self):
        return self.t.permute(0, 2, 3, 1) if self.image else self.t


class Net(torch.nn.Module):
    def __init__(self, path, dtype=torch.float32, device="cpu", weights=None, dropout=False):
        super().__init__()
        with open(path, encoding="utf-8") as f:
            self.model = yaml.safe_load(f)
        self.reader = Reader(self.model)
        self.layers, self.weights = self.reader.layers, weights
        self.dtype, self.device, self.dropout = dtype, device, dropout
        self.named, self.values = {}, {}

    # ---- parameters ----

    def param(self, layer, suffix, shape, order=None):
        """The tensor OWNER.SUFFIX; `order` leads from lockstep's axes to PyTorch's."""
        name = "%s.%s" % (layer.owner, suffix)
        if name not in self.named:
            if self.weights is not None:
                w = np.asarray(self.weights[name], np.float32).reshape(shape)
            elif suffix == "weight" and len(shape) > 1:
                w = np.random.randn(*shape).astype(np.float32) * (2 / np.prod(shape[1:])) ** 0.5
            else:
                w = np.full(shape, 1.0 if suffix == "weight" else 0.0, np.float32)
            w = np.ascontiguousarray(w.transpose(order) if order else w)
            p = torch.nn.Parameter(torch.from_numpy(w).to(self.device).to(self.dtype))
            self.named[name] = (p, order)
            self.register_parameter(name.replace(".", "_"), p)
        return self.named[name][0]

    def gradients(self):
        """{name: gradient as lockstep lays it out, in double}."""
        out = {}
        for name, (p, order) in self.named.items():
            g = p.grad.double().cpu().numpy()
            out[name] = (g.transpose(np.argsort(order)) if order else g).ravel()
        return out

    # ---- layers ----

    def conv2d(self, l, x):
        t, k = x.nchw(), l.keys
        kernel, stride = pair(k["kernel"]), pair(k.get("stride", 1))
        dilation, groups = pair(k.get("dilation", 1)), k.get("groups", 1)
        w = self.param(l, "weight", (k["out"], *kernel, t.shape[1] // groups), (0, 3, 1, 2))
        b = self.param(l, "bias", (k["out"],)) if k.get("bias", True) else None
        top, bottom, left, right = pads(k, t, kernel, stride, dilation)
        if (top, left) != (bottom, right):
            t, top, left = F.pad(t, (left, right, top, bottom)), 0, 0
        return Value(F.conv2d(t, w, b, stride, (top, left), dilation, groups), True)

    def conv_transpose2d(self, l, x):
        t, k = x.nchw(), l.keys
        kernel, stride = pair(k["kernel"]), pair(k.get("stride", 1))
        groups, out = k.get("groups", 1), k["out"]
        w = self.param(l, "weight", (t.shape[1], *kernel, out // groups), (0, 3, 1, 2))
        b = self.param(l, "bias", (out,)) if k.get("bias", True) else None
        return Value(F.conv_transpose2d(t, w, b, stride, pair(k.get("pad", 0)),
                                        pair(k.get("output_pad", 0)), groups,
                                        pair(k.get("dilation", 1))), True)

    def dense(self, l, x):
        t = x.plain().flatten(1)
        w = self.param(l, "weight", (l.keys["out"], t.shape[1]))
        b = self.param(l, "bias", (l.keys["out"],)) if l.keys.get("bias", True) else None
        return Value(F.linear(t, w, b))

    def affine(self, l, c):
        return self.param(l, "weight", (c,)), self.param(l, "bias", (c,))

    def batch_norm(self, l, x):
        w, b = self.affine(l, x.t.shape[1])
        eps = float(l.keys.get("eps", 1e-5))
        return Value(F.batch_norm(x.t, None, None, w, b, True, 0.1, eps), x.image)

    def group_norm(self, l, x):
        w, b = self.affine(l, x.nchw().shape[1])
        return Value(F.group_norm(x.nchw(), l.keys["groups"], w, b,
                                  float(l.keys.get("eps", 1e-5))), True)

    def instance_norm(self, l, x):
        w, b = self.affine(l, x.nchw().shape[1])
        return Value(F.instance_norm(x.nchw(), None, None, w, b,
                                     eps=float(l.keys.get("eps", 1e-5))), True)

    def layer_norm(self, l, x):
        t = x.plain()
        w, b = self.affine(l, t.shape[-1])
        return Value(F.layer_norm(t, t.shape[-1:], w, b, float(l.keys.get("eps", 1e-5))))

    def maxpool(self, l, x):
        k = l.keys
        kernel = pair(k["kernel"])
        stride, dilation = pair(k.get("stride", k["kernel"])), pair(k.get("dilation", 1))
        top, bottom, left, right = pads(k, x.nchw(), kernel, stride, dilation)
        assert (top, left) == (bottom, right)
        return Value(F.max_pool2d(x.nchw(), kernel, stride, (top, left), dilation,
                                  k.get("ceil", False)), True)

    def avgpool(self, l, x):
        k = l.keys
        kernel, stride = pair(k["kernel"]), pair(k.get("stride", k["kernel"]))
        top, bottom, left, right = pads(k, x.nchw(), kernel, stride, (1, 1))
        assert (top, left) == (bottom, right)
        return Value(F.avg_pool2d(x.nchw(), kernel, stride, (top, left), k.get("ceil", False),
                                  k.get("count_pad", False)), True)

    def global_avgpool(self, l, x):
        return Value(x.nchw().mean((2, 3), keepdim=True), True)

    def global_maxpool(self, l, x):
        return Value(x.nchw().amax((2, 3), keepdim=True), True)

    def flatten(self, l, x):
        return Value(x.plain().flatten(1))

    def drop(self, l, x):
        return Value(F.dropout(x.t, l.keys["p"]) if self.dropout else x.t, x.image)

    def joined(self, values):
        if all(v.image for v in values):
            return [v.t for v in values], True
        return [v.plain() for v in values], False

    def run(self, l, values):
        k = l.keys
        x = values[0] if values else None
        if l.kind in UNARY:
            return Value(UNARY[l.kind](x.t), x.image)
        if l.kind == "leaky_relu":
            return Value(F.leaky_relu(x.t, k.get("slope", 0.01)), x.image)
        if l.kind == "dropout":
            return self.drop(l, x)
        if l.kind in BINARY and len(values) > 1:
            parts, image = self.joined(values)
            y = parts[0]
            for p in parts[1:]:
                y = BINARY[l.kind](y, p)
            return Value(y, image)
        if l.kind == "pad" and "border" in k:
            b = k["border"]
            return Value(F.pad(x.nchw(), (b, b, b, b)), True)
        if not hasattr(self, l.kind):
            raise NotImplementedError("layer " + l.kind)
        return getattr(self, l.kind)(l, x)

    def forward(self, x):
        """x is what lockstep is given: [N][H][W][C]."""
        self.values = {"input": Value(x.permute(0, 3, 1, 2).contiguous(), True)
                       if x.dim() == 4 else Value(x)}
        for l in self.layers:
            self.values[l.name] = self.run(l, [self.values[s] for s in l.sources])
        return self.values[self.layers[-1].name].plain()

    def loss(self, x, labels):
        loss = self.model["loss"]
        if loss != "softmax_cross_entropy":
            raise NotImplementedError("loss %s" % (loss,))
        return F.cross_entropy(self(x), labels)


def model_path(name, root=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")):
    return name if os.path.exists(name) else "%s/docs/examples/models/%s.yaml" % (root, name)
