/* Runs a target once for each file named, without a fuzzer: the regression run of the corpus. A folder stands
 * for the files in it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "target.h"

static unsigned run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    require(file && fstat(fileno(file), &status) == 0);
    size_t size = (size_t)status.st_size;
    uint8_t *data = malloc(size + 1);
    require(data && fread(data, 1, size, file) == size);
    fclose(file);
    /* Exactly as long as the file, so that the address sanitizer sees a read beyond it. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    require(exact);
    memcpy(exact, data, size);
    free(data);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static unsigned run(const char *path)
{
    DIR *folder = opendir(path);
    unsigned count = 0;
    if (!folder)
        return run_file(path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char whole[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(whole, sizeof whole, "%s/%s", path, entry->d_name);
        count += run_file(whole);
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    for (int i = 1; i < argc; i++)
        count += run(argv[i]);
    printf("%u files\n", count);
    return count > 0 ? 0 : 1;
}
