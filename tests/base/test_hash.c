/*
 * test_hash.c - sha256 against the published examples of FIPS 180-4.
 */
#include "base/hash.h"
#include "helpers.h"

Test(hash, published_examples)
{
    char hex[LKSI_SHA256_HEX];
    EXPECT_OK(lksi_sha256_bytes("", 0, hex));
    cr_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_OK(lksi_sha256_bytes("abc", 3, hex));
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Test(hash, pieces_are_the_whole)
{
    const char *text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char hex[LKSI_SHA256_HEX];
    struct lksi_sha256 h;
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        EXPECT_OK(lksi_sha256_init(&h));
        EXPECT_OK(lksi_sha256_update(&h, text, cut));
        EXPECT_OK(lksi_sha256_update(&h, text + cut, strlen(text) - cut));
        EXPECT_OK(lksi_sha256_final(&h, hex));
        cr_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        cr_assert_null(h.state);
    }
    lksi_sha256_drop(&h);
}
