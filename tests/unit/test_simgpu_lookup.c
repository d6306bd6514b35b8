/* Looking the driver's functions up: by dlsym, and by cuGetProcAddress with name, version and flags. */
#include "simgpu/child.h"

static void *look_up(const char *name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult expected)
{
    void *address = (void *)1;
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
    OK(CU(cuGetProcAddress_v2)(name, &address, version, flags, &status));
    EXPECT(status, expected);
    return address;
}

static void body_test_the_version_picks_the_variant(void)
{
    static const struct {
        const char *name;
        int version;
        cuuint64_t flags;
        const char *symbol;
    } rows[] = {
        {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
        {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
        {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
        {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"}, /* has no per-thread variant */
        {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
        {"cuMemAllocAsync", 11020, 1, "cuMemAllocAsync"},
        {"cuMemAllocAsync", 11020, 2, "cuMemAllocAsync_ptsz"},
        {"cuMemcpyHtoD", 3020, 2, "cuMemcpyHtoD_v2"}, /* the per-thread one is of CUDA 7 */
        {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
        {"cuCtxCreate", 3010, 0, "cuCtxCreate"},
        {"cuCtxCreate", 11030, 0, "cuCtxCreate_v2"},
        {"cuCtxCreate", 11040, 0, "cuCtxCreate_v3"},
        {"cuCtxCreate", 12050, 0, "cuCtxCreate_v4"},
        {"cuStreamGetCaptureInfo", 12000, 2, "cuStreamGetCaptureInfo_v2_ptsz"},
        {"cuGraphInstantiate", 10000, 0, "cuGraphInstantiate"},
        {"cuGraphInstantiate", 11000, 0, "cuGraphInstantiate_v2"},
        {"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags"},
        {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
        {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TRUE(look_up(rows[i].name, rows[i].version, rows[i].flags, CU_GET_PROC_ADDRESS_SUCCESS) ==
             driver_symbol(rows[i].symbol));
}
CHILD_TEST(test_the_version_picks_the_variant, "")

static void body_test_the_status_tells_why_not(void)
{
    void *address;
    TRUE(!look_up("cuMemAllocAsync", 11010, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    TRUE(!look_up("cuNoSuchThing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    TRUE(!look_up("", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    TRUE(!look_up("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)); /* base names only */
    OK(CU(cuGetProcAddress_v2)("cuMemAlloc", &address, 13000, 0, NULL)); /* the status is optional */
    TRUE(address == driver_symbol("cuMemAlloc_v2"));
    EXPECT(CU(cuGetProcAddress_v2)("cuMemAlloc", &address, 13010, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGetProcAddress_v2)(NULL, &address, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(CU(cuGetProcAddress_v2)("cuMemAlloc", NULL, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(CU(cuGetProcAddress)("cuMemAlloc", &address, 11030, 0));
    TRUE(address == driver_symbol("cuMemAlloc_v2"));
    EXPECT(CU(cuGetProcAddress)("cuNoSuchThing", &address, 11030, 0), CUDA_ERROR_NOT_FOUND);
}
CHILD_TEST(test_the_status_tells_why_not, "")

/* PFN_cuName_v12345 and PFN_cuName_v12345_ptsz, as the toolkit's header spells what exists since when. */
static void check_typedef(const char *text)
{
    char name[128];
    const char *version = NULL;
    for (const char *at = text; (at = strstr(at, "_v")); at++)
        if (at[2] >= '0' && at[2] <= '9')
            version = at;
    TRUE(version);
    size_t length = (size_t)(version - text);
    TRUE(length < sizeof name);
    memcpy(name, text, length);
    name[length] = '\0';
    bool per_thread = strstr(version, "_pt");
    int number = atoi(version + 2);
    void *exact = look_up(name, number, per_thread ? 2 : 0, CU_GET_PROC_ADDRESS_SUCCESS), *earlier;
    TRUE(exact);
    OK(CU(cuGetProcAddress_v2)(name, &earlier, number - 10, per_thread ? 2 : 0, NULL));
    TRUE(earlier != exact);
}

static void body_test_every_name_of_the_toolkit_is_found_since_its_version(void)
{
    const char *home = getenv("CUDA_HOME");
    char path[4096], line[4096];
    snprintf(path, sizeof path, "%s/include/cudaTypedefs.h", home ? home : "/usr/local/cuda");
    FILE *file = fopen(path, "r");
    int count = 0;
    if (!file) {
        printf("skipped: no cudaTypedefs.h here\n");
        return;
    }
    while (fgets(line, sizeof line, file)) {
        char *start = strstr(line, "*PFN_"), *end = start ? strchr(start, ')') : NULL;
        if (!end)
            continue;
        *end = '\0';
        check_typedef(start + strlen("*PFN_"));
        count++;
    }
    fclose(file);
    TRUE(count > 400);
}
CHILD_TEST(test_every_name_of_the_toolkit_is_found_since_its_version, "")

/* What is not simulated says so, whatever its parameters. */
static void body_test_a_function_that_is_not_simulated_says_so(void)
{
    start(0);
    CUresult (*function)(void) = (CUresult(*)(void))driver_symbol("cuCheckpointProcessGetState");
    EXPECT(function(), CUDA_ERROR_NOT_SUPPORTED);
}
CHILD_TEST(test_a_function_that_is_not_simulated_says_so, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_version_picks_the_variant),
        cmocka_unit_test(test_the_status_tells_why_not),
        cmocka_unit_test(test_every_name_of_the_toolkit_is_found_since_its_version),
        cmocka_unit_test(test_a_function_that_is_not_simulated_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
