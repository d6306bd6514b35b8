/*
 * A line table of a code object: the first bytes are the format, the first line and the offset, the rest is
 * the table.
 */
#include "capture/python_lines.h"

#include <string.h>

#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct {
        int32_t first_line, offset;
    } asked;
    if (size < 1 + sizeof asked)
        return 0;
    enum python_line_format format = (enum python_line_format)(data[0] % (PYTHON_LOCATIONS + 1));
    memcpy(&asked, data + 1, sizeof asked);
    data += 1 + sizeof asked;
    size -= 1 + sizeof asked;
    require(python_line(format, data, size, asked.first_line, asked.offset) >= 0);
    for (int32_t offset = 0; offset < 64; offset += 2)
        require(python_line(format, data, size, asked.first_line, offset) >= 0);
    return 0;
}
