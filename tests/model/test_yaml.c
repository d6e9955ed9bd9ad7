/*
 * test_yaml.c - the document tree: places, values, every refusal with its text, mutated files.
 */
#include <locale.h>

#include "helpers.h"
#include "model/yaml.h"

static struct lksi_yaml *doc;

static void teardown(void)
{
    lksi_yaml_destroy(&doc);
}

TestSuite(yaml, .fini = teardown, .timeout = 120);

static const struct lksi_node *parse(const char *text)
{
    lksi_yaml_destroy(&doc);
    EXPECT_OK(lksi_yaml_parse("m.yaml", text, strlen(text), &doc));
    return lksi_yaml_root(doc);
}

static void expect_bad(const char *text, const char *place, const char *part)
{
    struct lksi_yaml *none = NULL;
    EXPECT_FAIL(LKS_E_INPUT, lksi_yaml_parse("m.yaml", text, strlen(text), &none), place, part);
    cr_assert_null(none, "written on failure");
}

static const char model[] = "# a comment\n"
                            "name: lenet\n"
                            "layers:\n"
                            "  - conv2d: {out: 32, kernel: 5}\n"
                            "  - relu\n"
                            "  - maxpool:\n"
                            "train:\n"
                            "    batch: 64\n"
                            "    lr: 0.05\n";

Test(yaml, tree_with_places)
{
    const struct lksi_node *root = parse(model), *layers, *conv;
    char text[96];
    cr_assert_eq(root->kind, LKSI_NODE_MAPPING);
    cr_assert_eq(root->count, 3);
    cr_assert_str_eq(root->key, "");
    cr_assert_str_eq(root->items[0]->key, "name");
    cr_assert_str_eq(root->items[1]->key, "layers");
    cr_assert_str_eq(root->items[2]->key, "train");
    cr_assert_eq(root->key_lines[2], 7);
    cr_assert_str_eq(root->items[0]->text, "lenet");
    cr_assert_eq(root->items[0]->line, 2);
    cr_assert_eq(root->items[0]->column, 7);
    cr_assert_str_eq(root->file, "m.yaml");
    layers = lksi_node_get(root, "layers");
    cr_assert_eq(layers->kind, LKSI_NODE_SEQUENCE);
    cr_assert_eq(layers->count, 3);
    conv = lksi_node_get(layers->items[0], "conv2d");
    cr_assert_eq(conv->line, 4);
    cr_assert_str_eq(conv->items[1]->text, "5");
    cr_assert_str_eq(layers->items[1]->key, "layers[1]");
    cr_assert_str_eq(layers->items[1]->text, "relu");
    cr_assert(lksi_node_is_null(layers->items[2]->items[0]));
    cr_assert_eq(layers->items[2]->items[0]->line, 6);
    cr_assert_null(lksi_node_get(root, "none"));
    cr_assert_str_eq(lksi_node_describe(conv, text, sizeof text), "a mapping");
    cr_assert_str_eq(lksi_node_describe(layers, text, sizeof text), "a sequence of 3");
}

Test(yaml, refusals_of_the_text)
{
    expect_bad("", "m.yaml:1:", "the file is empty");
    expect_bad("# only a comment\n", "m.yaml:1:", "the file is empty");
    expect_bad("a: 1\nb: [1, 2\n", "m.yaml:3:1:", "not valid YAML");
    expect_bad("a: 1\n\tb: 2\n", "m.yaml:2:", "not valid YAML");
    expect_bad("a: \xff\xfe\n", "m.yaml: byte 3", "save the file as UTF-8");
    expect_bad("a: 1\nb: 2\na: 3\n", "m.yaml:3:", "key `a` comes twice, first in line 1");
    expect_bad("a: {b: 1, b: 1}\n", "m.yaml:1:", "key `b` comes twice");
    expect_bad("a: &x 1\nb: *x\n", "m.yaml:1:4:", "anchors (`&x`)");
    expect_bad("a: &x {b: 1}\n", "m.yaml:1:4:", "anchors (`&x`)");
    expect_bad("a: &x [1]\n", "m.yaml:1:4:", "anchors (`&x`)");
    expect_bad("a: 1\nb: *x\n", "m.yaml:2:4:", "aliases (`*x`)");
    expect_bad("a: !!int 5\n", "m.yaml:1:4:", "tags (");
    expect_bad("a: !x [5]\n", "m.yaml:1:4:", "tags (");
    expect_bad("{a: 1}: 2\n", "m.yaml:1:1:", "a key is a word, found a mapping");
    expect_bad("[a]: 2\n", "m.yaml:1:1:", "a key is a word, found a sequence");
    expect_bad("\"\": 2\n", "m.yaml:1:1:", "a key is empty");
    expect_bad("a: \"x\\0y\"\n", "m.yaml:1:4:", "a zero byte");
    expect_bad("a: 1\n---\nb: 2\n", "m.yaml:2:1:", "a second document");
}

Test(yaml, limits)
{
    struct lksi_yaml *none = NULL;
    char deep[200] = {0}, *big = malloc(LKSI_YAML_MAX_BYTES + 1);
    memset(deep, '[', LKSI_YAML_MAX_DEPTH);
    memset(deep + LKSI_YAML_MAX_DEPTH, ']', LKSI_YAML_MAX_DEPTH);
    cr_assert_eq(parse(deep)->count, 1);
    memset(deep, '[', LKSI_YAML_MAX_DEPTH + 1);
    expect_bad(deep, "m.yaml:1:33:", "more than 32 mappings and sequences");
    memset(big, ' ', LKSI_YAML_MAX_BYTES + 1);
    EXPECT_FAIL(LKS_E_INPUT, lksi_yaml_parse("m.yaml", big, LKSI_YAML_MAX_BYTES + 1, &none),
                "m.yaml", "1048577 bytes", "at most 1048576");
    memset(big, '[', LKSI_YAML_MAX_BYTES);
    EXPECT_FAIL(LKS_E_INPUT, lksi_yaml_parse("m.yaml", big, LKSI_YAML_MAX_BYTES, &none),
                "more than 32");
    struct lksi_str many = {0};
    for (int i = 0; i < LKSI_YAML_MAX_KEYS; i++)
        lksi_str_add(&many, "k%d: 1\n", i);
    cr_assert_eq(parse(many.text)->count, LKSI_YAML_MAX_KEYS);
    lksi_str_add(&many, "one_more: 1\n");
    expect_bad(many.text, "m.yaml:1025:1:", "more than 1024 keys");
    free(many.text);
    free(big);
}

Test(yaml, files)
{
    char *folder = scratch_make();
    const char *path = in_folder(folder, "m.yaml");
    EXPECT_FAIL(LKS_E_IO, lksi_yaml_load(path, &doc), path, "No such file", "check the spelling");
    write_bytes(path, model, strlen(model));
    EXPECT_OK(lksi_yaml_load(path, &doc));
    cr_assert_str_eq(lksi_yaml_root(doc)->file, path);
    scratch_remove(folder);
}

static void expect_int(const char *text, int64_t low, int64_t high, int64_t want)
{
    int64_t got = 0;
    EXPECT_OK(lksi_node_int(parse(text)->items[0], low, high, "x: 1", &got));
    cr_assert_eq(got, want, "%s", text);
}

static void expect_no_int(const char *text, int64_t low, int64_t high, const char *message)
{
    int64_t got = 77;
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_int(parse(text)->items[0], low, high, "x: 64", &got),
                message);
    cr_assert_eq(got, 77, "written on failure");
}

Test(yaml, integers)
{
    expect_int("x: 0", INT64_MIN, INT64_MAX, 0);
    expect_int("x: 64", 1, 64, 64);
    expect_int("x: -5", -5, 0, -5);
    expect_int("x: +7", 1, 9, 7);
    expect_int("x: 0xFf", 0, 255, 255);
    expect_int("x: 9223372036854775807", 0, INT64_MAX, INT64_MAX);
    expect_no_int(
        "x: abc", 1, INT32_MAX,
        "m.yaml:1: key `x`: expected a positive integer, found `abc`; write e.g. `x: 64`");
    expect_no_int("\nx: 0", 1, INT32_MAX,
                  "m.yaml:2: key `x`: expected a positive integer, found `0`");
    expect_no_int("x: 3000000000", 1, INT32_MAX, "an integer from 1 to 2147483647");
    expect_no_int("x: 9", 0, 8, "an integer from 0 to 8, found `9`");
    expect_no_int("x: 9223372036854775808", 0, INT64_MAX, "found `9223372036854775808`");
    expect_no_int("x: 99999999999999999999999999", 0, INT64_MAX,
                  "found `99999999999999999999999999`");
    expect_no_int("x: \"5\"", 0, 8, "found the string \"5\"");
    expect_no_int("x: 5.0", 0, 8, "found `5.0`");
    expect_no_int("x: 010", 0, 99, "found `010`");
    expect_no_int("x: 1_000", 0, 9999, "found `1_000`");
    expect_no_int("x: 0x", 0, 9999, "found `0x`");
    expect_no_int("x: +", 0, 9999, "found `+`");
    expect_no_int("x:", 0, 8, "found nothing");
    expect_no_int("x: ~", 0, 8, "found nothing");
    expect_no_int("x: [1]", 0, 8, "found a sequence of 1");
    expect_no_int("x: {a: 1}", 0, 8, "found a mapping");
    expect_no_int("x: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9\xc3\xa9", 0, 8,
                  "found `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...`");
}

Test(yaml, seeds)
{
    uint64_t seed = 5;
    EXPECT_OK(lksi_node_u64(parse("x: 18446744073709551615")->items[0], "seed: 1", &seed));
    cr_assert_eq(seed, UINT64_MAX);
    EXPECT_OK(lksi_node_u64(parse("x: 0xffffffffffffffff")->items[0], "seed: 1", &seed));
    cr_assert_eq(seed, UINT64_MAX);
    seed = 5;
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_u64(parse("x: -1")->items[0], "seed: 1", &seed),
                "from 0 to 18446744073709551615", "found `-1`", "`seed: 1`");
    EXPECT_FAIL(LKS_E_INPUT,
                lksi_node_u64(parse("x: 18446744073709551616")->items[0], "seed: 1", &seed),
                "found `18446744073709551616`");
    cr_assert_eq(seed, 5);
}

static void expect_float(const char *text, double want)
{
    double got = 0;
    EXPECT_OK(lksi_node_float(parse(text)->items[0], -DBL_MAX, DBL_MAX, "x: 0.1", &got));
    cr_assert(got == want, "%s: %.17g", text, got);
}

static void expect_no_float(const char *text, double low, double high, const char *message)
{
    double got = 77;
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_float(parse(text)->items[0], low, high, "x: 0.1", &got),
                message);
    cr_assert(got == 77, "written on failure");
}

static void check_floats(void)
{
    expect_float("x: 0.1307", 0.1307);
    expect_float("x: -1.5e-3", -1.5e-3);
    expect_float("x: 5", 5.0);
    expect_float("x: .5", 0.5);
    expect_float("x: 5.", 5.0);
    expect_float("x: 1E5", 1e5);
    expect_float("x: 4.9406564584124654e-324", 4.9406564584124654e-324);
    /* Needs all digits to round right. */
    expect_float("x: 1.00000000000000011102230246251565404236316680908203126",
                 0x1.0000000000001p+0);
    expect_no_float("x: 0,5", -DBL_MAX, DBL_MAX, "expected a number, found `0,5`");
    expect_no_float("x: 1e999", -DBL_MAX, DBL_MAX, "found `1e999`");
    expect_no_float("x: .inf", -DBL_MAX, DBL_MAX, "found `.inf`");
    expect_no_float("x: nan", -DBL_MAX, DBL_MAX, "found `nan`");
    expect_no_float("x: 0x10", -DBL_MAX, DBL_MAX, "found `0x10`");
    expect_no_float("x: 1e", -DBL_MAX, DBL_MAX, "found `1e`");
    expect_no_float("x: .", -DBL_MAX, DBL_MAX, "found `.`");
    expect_no_float("x: 1.5x", -DBL_MAX, DBL_MAX, "found `1.5x`");
    expect_no_float("x: 0", LKSI_POSITIVE, DBL_MAX, "expected a positive number, found `0`");
    expect_no_float("x: 1e-400", LKSI_POSITIVE, DBL_MAX, "expected a positive number");
    expect_no_float("x: -1", 0, DBL_MAX, "a number that is not negative");
    expect_no_float("x: 2", LKSI_POSITIVE, 1, "a number above 0, at most 1");
    expect_no_float("x: 2", -1, 1, "a number from -1 to 1");
    expect_no_float("x: '0.5'", -1, 1, "found the string \"0.5\"");
}

Test(yaml, floats)
{
    check_floats();
}

/* A locale with a decimal comma is compiled for the test where localedef can do it. */
Test(yaml, floats_in_a_locale_with_a_comma)
{
    char *folder = scratch_make(), command[600];
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1", folder);
    if (system(command) != 0)
        cr_log_warn("localedef failed; trying the installed locales");
    setenv("LOCPATH", folder, 1);
    bool set = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    if (!set) {
        unsetenv("LOCPATH");
        set = setlocale(LC_ALL, "de_DE.UTF-8") != NULL || setlocale(LC_ALL, "fr_FR.UTF-8") != NULL;
    }
    scratch_remove(folder);
    if (!set)
        cr_skip_test("no locale with a decimal comma: install the Debian package locales");
    cr_assert_str_eq(localeconv()->decimal_point, ",");
    check_floats();
}

Test(yaml, other_values)
{
    static const char *const words[] = {"glorot_uniform", "he_normal", "zeros"};
    const struct lksi_node *n;
    const char *text = "old";
    size_t which = 9;
    bool flag = false;
    EXPECT_OK(lksi_node_bool(parse("x: true")->items[0], "x: true", &flag));
    cr_assert(flag);
    EXPECT_OK(lksi_node_bool(parse("x: false")->items[0], "x: true", &flag));
    cr_assert(!flag);
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_bool(parse("x: yes")->items[0], "x: true", &flag),
                "expected `true` or `false`, found `yes`; write e.g. `x: true`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_bool(parse("x: 'true'")->items[0], "x: true", &flag),
                "found the string \"true\"");
    n = parse("x:");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_string(n->items[0], "x: abc", &text), "found nothing");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_string(n, "x: abc", &text), "m.yaml:1: expected a word");
    cr_assert_str_eq(text, "old");
    EXPECT_OK(lksi_node_string(parse("x: '~'")->items[0], "x: abc", &text));
    cr_assert_str_eq(text, "~");
    EXPECT_OK(lksi_node_choice(parse("x: he_normal")->items[0], words, 3, &which));
    cr_assert_eq(which, 1);
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_choice(parse("x: he_nromal")->items[0], words, 3, &which),
                "found `he_nromal`; did you mean `he_normal`? Expected one of `glorot_uniform`, "
                "`he_normal` and `zeros`",
                "did you mean `he_normal`?");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_choice(parse("x: [a]")->items[0], words, 3, &which),
                "found a sequence of 1");
    cr_assert_eq(which, 1);
    EXPECT_OK(lksi_node_is(n = parse("x: [1]")->items[0], LKSI_NODE_SEQUENCE, "x: [1]"));
    EXPECT_FAIL(
        LKS_E_INPUT, lksi_node_is(n, LKSI_NODE_MAPPING, "x: {a: 1}"),
        "m.yaml:1: key `x`: expected a mapping, found a sequence of 1; write e.g. `x: {a: 1}`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_is(n, LKSI_NODE_SCALAR, "x: 1"), "expected a single value");
}

Test(yaml, keys)
{
    static const char *const allowed[] = {"out", "kernel", "pad"};
    const struct lksi_node *conv, *node = NULL;
    EXPECT_OK(lksi_node_check_keys(parse("pad: 1\nout: 2\n"), allowed, 3));
    EXPECT_FAIL(
        LKS_E_INPUT, lksi_node_check_keys(parse("out: 1\nkernal: 2\n"), allowed, 3),
        "m.yaml:2: unknown key `kernal`; did you mean `kernel`? Allowed: `out`, `kernel` and "
        "`pad`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_check_keys(parse("zzz: 1\n"), allowed, 3),
                "m.yaml:1: unknown key `zzz`; allowed: `out`, `kernel` and `pad`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_check_keys(parse("a: 1\n"), allowed, 0), "allowed: nothing");
    conv = lksi_node_get(parse("n: 1\nconv: {kernel: 5}\n"), "conv");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_need(conv, "out", "out: 32", &node),
                "m.yaml:2: key `out` is missing in `conv`; write e.g. `out: 32`");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_need(lksi_yaml_root(doc), "data", "data: {}", &node),
                "m.yaml:1: key `data` is missing; write e.g.");
    cr_assert_null(node);
    EXPECT_OK(lksi_node_need(conv, "kernel", "kernel: 3", &node));
    cr_assert_str_eq(node->text, "5");
    EXPECT_FAIL(LKS_E_INPUT, lksi_node_check_keys(conv, allowed, 1),
                "unknown key `kernel` in conv");
}

Test(yaml, optional_keys)
{
    const struct lksi_node *m = parse("i: 5\nu: 6\nf: 0.5\nb: true\ns: abc\n");
    int64_t i = 1;
    uint64_t u = 2;
    double f = 3;
    bool b = false;
    const char *s = "old";
    EXPECT_OK(lksi_map_int(m, "none", 0, 9, "", &i));
    EXPECT_OK(lksi_map_u64(m, "none", "", &u));
    EXPECT_OK(lksi_map_float(m, "none", 0, 9, "", &f));
    EXPECT_OK(lksi_map_bool(m, "none", "", &b));
    EXPECT_OK(lksi_map_string(m, "none", "", &s));
    cr_assert(i == 1 && u == 2 && f == 3 && !b && strcmp(s, "old") == 0);
    EXPECT_OK(lksi_map_int(m, "i", 0, 9, "", &i));
    EXPECT_OK(lksi_map_u64(m, "u", "", &u));
    EXPECT_OK(lksi_map_float(m, "f", 0, 9, "", &f));
    EXPECT_OK(lksi_map_bool(m, "b", "", &b));
    EXPECT_OK(lksi_map_string(m, "s", "", &s));
    cr_assert(i == 5 && u == 6 && f == 0.5 && b && strcmp(s, "abc") == 0);
    EXPECT_FAIL(LKS_E_INPUT, lksi_map_int(m, "s", 0, 9, "s: 1", &i), "m.yaml:5: key `s`");
}

static void walk(const struct lksi_node *n)
{
    char text[96];
    int64_t i;
    double f;
    cr_assert_not_null(n->key);
    lksi_node_describe(n, text, sizeof text);
    (void)lksi_node_int(n, 0, 99, "x: 1", &i);
    (void)lksi_node_float(n, 0, 99, "x: 1", &f);
    for (size_t k = 0; k < n->count; k++)
        walk(n->items[k]);
}

/* Changed and cut files: a tree or LKS_E_INPUT that names the file, never a crash. */
Test(yaml, mutations)
{
    static const char spice[] = "[]{}:,-&*!|>'\"%@`#? \n\t\\0~\x80\xc3";
    uint64_t seed = 1;
    size_t accepted = 0;
    for (int round = 0; round < 5000; round++) {
        char copy[sizeof model];
        size_t size = sizeof model - 1;
        struct lksi_yaml *tree = NULL;
        memcpy(copy, model, sizeof model);
        for (uint32_t n = next_random(&seed) % 5; n > 0; n--)
            copy[next_random(&seed) % size] = spice[next_random(&seed) % (sizeof spice - 1)];
        if (next_random(&seed) % 4 == 0)
            size = next_random(&seed) % (size + 1);
        lks_status st = lksi_yaml_parse("m.yaml", copy, size, &tree);
        cr_assert(st == LKS_OK ||
                      (st == LKS_E_INPUT && strncmp(lks_error_message(), "m.yaml:", 7) == 0),
                  "round %d: %s", round, lks_error_message());
        if (st == LKS_OK) {
            accepted++;
            walk(lksi_yaml_root(tree));
        }
        lksi_yaml_destroy(&tree);
    }
    cr_assert(accepted > 500 && accepted < 4500, "%zu accepted: the mutations miss", accepted);
}
