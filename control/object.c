#include "config.h"

#include "control/object.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Where the linker has its own word for what is wrong, the file counts as whole. */
static bool has_all(int fd, uint64_t size)
{
    ElfW(Ehdr) head;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof(ElfW(Phdr)))
        return true;
    for (uint64_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;
        uint64_t at;
        if (__builtin_add_overflow(head.e_phoff, i * sizeof part, &at) || at > size ||
            pread(fd, &part, sizeof part, (off_t)at) != (ssize_t)sizeof part)
            return false;
        if (part.p_type == PT_LOAD && (part.p_offset > size || part.p_filesz > size - part.p_offset))
            return false;
    }
    return true;
}

bool vv_object_is_whole(const char *path)
{
    VV_CLEANUP(vv_close) int fd = vv_open_above(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat st;
    return fd < 0 || fstat(fd, &st) != 0 || has_all(fd, (uint64_t)st.st_size);
}

bool vv_object_is_shared(const char *path)
{
    /* The kind stands at the same place in the heads of both classes. */
    ElfW(Ehdr) head;
    size_t n = offsetof(ElfW(Ehdr), e_type) + sizeof head.e_type;
    VV_CLEANUP(vv_close) int fd = vv_open_above(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return true;
    if (pread(fd, &head, n, 0) != (ssize_t)n || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    bool is_native = head.e_ident[EI_DATA] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
    return !is_native || head.e_type == ET_DYN;
}

bool vv_object_is_code(const void *address)
{
    Dl_info in;
    void *found = NULL;
    if (!dladdr1(address, &in, &found, RTLD_DL_SYMENT) || !found)
        return true;
    const ElfW(Sym) *symbol = found;
    unsigned type = symbol->st_info & 0xf;
    return type != STT_OBJECT && type != STT_TLS && type != STT_COMMON;
}
