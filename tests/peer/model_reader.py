"""The layers of a model file with blocks expanded: names, inputs and shared parameters as
src/model/model_layers.c and block_uses.c give them. Files are taken to be right.
"""
PREFIX = {"conv2d": "conv", "conv1d": "conv1d_", "conv_transpose2d": "conv_transpose"}


class Layer:
    """`owner` is the layer whose parameters it uses, most often itself."""

    def __init__(self, kind, keys, name, sources, owner):
        self.kind, self.keys, self.name, self.sources, self.owner = kind, keys, name, sources, owner


class Scope:
    """Layers of the file, or of one use of a block: `start` is what they take, `share` the prefix of
    the use whose parameters they take, `carried` what names handed on mean here."""

    def __init__(self, outer, prefix, start, share=None, carried=None):
        self.outer, self.prefix, self.start, self.share = outer, prefix, start, share
        self.carried = carried or {}
        self.last, self.count, self.uses = start, {}, 0

    def chain(self):
        scope = self
        while scope is not None:
            yield scope
            scope = scope.outer


def fill_in(node, arguments):
    """The layers of a block with `$name` replaced."""
    if isinstance(node, dict):
        return {k: fill_in(v, arguments) for k, v in node.items()}
    if isinstance(node, list):
        return [fill_in(v, arguments) for v in node]
    return arguments[node[1:]] if isinstance(node, str) and node[:1] == "$" else node


def counted(name, i, times):
    return name if times == 1 or name is None else "%s_%d" % (name, i)


class Reader:
    """`layers` in order; `names` are layers and uses of blocks, with the layer each means."""

    def __init__(self, model):
        self.blocks, self.layers, self.names = model.get("blocks") or {}, [], {"input": "input"}
        self.owners = {}
        self.file = Scope(None, "", "input")
        self.add(self.file, model["layers"])

    def look_up(self, scope, name):
        if name == "input" or (name == "in" and scope.outer):
            return "input" if name == "input" else scope.start
        for s in scope.chain():
            if name in s.carried:
                return s.carried[name]
            if s.prefix + name in self.names:
                return self.names[s.prefix + name]
        return None

    def find(self, scope, name):
        at = self.look_up(scope, name)
        if at is None:
            raise KeyError(name)
        return at

    def find_all(self, scope, name):
        if "*" not in name:
            return [self.find(scope, name)]
        out = []
        while (at := self.look_up(scope, name.replace("*", str(len(out) + 1)))) is not None:
            out.append(at)
        return out

    def add(self, scope, items):
        for item in items:
            kind, keys = (item, {}) if isinstance(item, str) else next(iter(item.items()))
            if kind == "block":
                self.use(scope, keys)
            else:
                self.layer(scope, kind, keys or {})

    def layer(self, scope, kind, keys):
        scope.count[kind] = scope.count.get(kind, 0) + 1
        local = keys.get("name", PREFIX.get(kind, kind) + str(scope.count[kind]))
        name = scope.prefix + local
        if kind in ("random", "constant"):
            sources = []
        elif kind == "gradient":
            sources = [self.find(scope, keys["of"]), self.find(scope, keys["by"])]
        elif "from" not in keys:
            sources = [scope.last]
        else:
            given = keys["from"] if isinstance(keys["from"], list) else [keys["from"]]
            sources = [at for one in given for at in self.find_all(scope, one)]
        owner = name
        if "share" in keys:
            owner = self.owners[self.find(scope, keys["share"])]
        elif scope.share is not None:
            owner = self.owners.get(scope.share + local, name)
        self.layers.append(Layer(kind, keys, name, sources, owner))
        self.owners[name] = owner
        self.names[name] = scope.last = name

    def use(self, scope, keys):
        scope.uses += 1
        name = scope.prefix + keys.get("name", "block%d" % scope.uses)
        start = self.find(scope, keys["from"]) if "from" in keys else scope.last
        share = None
        if "share" in keys:
            share = scope.prefix + keys["share"]
        elif scope.share is not None:
            share = scope.share + name[len(scope.prefix):]
        carried, times = {}, keys.get("times", 1)
        for key, value in (keys.get("start") or {}).items():
            if isinstance(value, list):
                zeros = Scope(scope, name + "_", start)
                self.layer(zeros, "constant", {"shape": value, "name": key})
                carried[key] = zeros.last
            else:
                carried[key] = self.find(scope, value)
        block, shared = self.blocks[keys["use"]], keys.get("shared", False)
        for i in range(1, times + 1):
            first = shared and i > 1 and share is None
            other = counted(name if first else share, 1 if first or shared else i, times)
            one = counted(name, i, times)
            inner = Scope(scope, one + "_", start, None if other is None else other + "_", carried)
            self.add(inner, fill_in(block["layers"],
                                    {**(block.get("args") or {}), **keys, "i": i - 1}))
            carried = {k: self.find(inner, v) for k, v in (keys.get("carry") or {}).items()}
            self.names[one] = start = inner.last
        self.names[name] = scope.last = start
