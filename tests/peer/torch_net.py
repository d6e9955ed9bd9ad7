"""A model file as a PyTorch network, to be compared with: parameters in lockstep's layout, losses
and which optimiser lowers which.

Images are NCHW inside (what PyTorch is fastest with) and go back to (height, width, channels) where
a layer looks at the order of elements. A layer, key or loss that is not here is an error.
"""
import fnmatch
import os

import numpy as np
import torch
import torch.nn.functional as F
import yaml

import torch_layers
from model_reader import Reader


class Net(torch.nn.Module):
    """
    weights: {name: array in lockstep's layout}, or None for random ones.
    chance:  an object with dropout(layer, x, p) and random(layer, shape), which say what these layers
             give; None: dropout passes all on, and there are no random layers.
    contiguous: keep images as NCHW in memory, too; see torch_layers.image.
    pieces:  {layer: piece} to use in place of those of the layer's own input; see torch_layers.py.
    """

    def __init__(self, path, dtype=torch.float32, device="cpu", weights=None, chance=None,
                 pieces=None, contiguous=False):
        super().__init__()
        with open(path, encoding="utf-8") as f:
            self.model = yaml.safe_load(f)
        self.reader = Reader(self.model)
        self.layers, self.weights, self.chance = self.reader.layers, weights, chance
        self.dtype, self.device, self.pieces = dtype, device, pieces
        self.contiguous = contiguous
        self.differentiated = {l.sources[1] for l in self.layers if l.kind == "gradient"}
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

    # ---- forward, losses, backward ----

    def forward(self, x):
        """x is what lockstep is given: [N][H][W][C], or another shape, or tokens."""
        value = torch_layers.Value
        self.values = {"input": value(x.permute(0, 3, 1, 2).contiguous(), True)
                       if x.dim() == 4 else value(x)}
        for l in self.layers:
            out = torch_layers.run(self, l, [self.values[s] for s in l.sources], len(x))
            if l.name in self.differentiated and not out.t.requires_grad:
                out.t = out.t.detach().requires_grad_()
            self.values[l.name] = out
        return self.values[self.layers[-1].name].plain()

    def term(self, word, keys, labels):
        find = lambda name: self.values[self.reader.find(self.reader.file, name)].plain()
        x = find(keys.get("of", self.layers[-1].name))
        if word == "mean":
            return x.mean()
        if word == "softmax_cross_entropy":
            if set(keys) - {"of", "weight", "smoothing"}:
                raise NotImplementedError("keys of softmax_cross_entropy: %s" % keys)
            return F.cross_entropy(x.flatten(0, -2), labels.flatten(),
                                   label_smoothing=float(keys.get("smoothing", 0)))
        target, beta = keys["target"], float(keys.get("beta", 1.0))
        target = find(target) if isinstance(target, str) else torch.full_like(x, torch_layers.number(target))
        return {
            "mse": lambda: F.mse_loss(x, target),
            "l1": lambda: F.l1_loss(x, target),
            "huber": lambda: F.huber_loss(x, target, delta=beta),
            "smooth_l1": lambda: F.smooth_l1_loss(x, target, beta=beta),
            "bce_with_logits": lambda: F.binary_cross_entropy_with_logits(x, target),
        }[word]()

    def losses(self, x, labels):
        """{name: loss} of the forward pass."""
        self(x)
        out = {}
        for name, terms in (self.model.get("losses") or {"loss": self.model["loss"]}).items():
            terms = {terms: {}} if isinstance(terms, str) else terms
            out[name] = sum(torch_layers.number(keys.get("weight", 1)) * self.term(word, keys, labels)
                            for one in (terms if isinstance(terms, list) else [terms])
                            for word, keys in one.items())
        return out

    def optimizers(self):
        """[(loss, its parameters)]."""
        given = self.model["train"].get("optimizers") or [{}]
        first = next(iter(self.model.get("losses") or ["loss"]))
        return [(one.get("loss", first),
                 [p for name, (p, _) in self.named.items()
                  if any(fnmatch.fnmatchcase(name, q) for q in one.get("params", ["*"]))])
                for one in given]

    def backward(self, x, labels):
        """The gradients of one step: each parameter's of the loss that its optimiser lowers."""
        losses, parts = self.losses(x, labels), self.optimizers()
        for i, (loss, parameters) in enumerate(parts):
            losses[loss].backward(inputs=parameters, retain_graph=i + 1 < len(parts))


def model_path(name, root=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")):
    return name if os.path.exists(name) else "%s/docs/examples/models/%s.yaml" % (root, name)
