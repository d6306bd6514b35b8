/*
 * What Py_FinalizeEx does, in this order, in every version from 3.8 on (Python/pylifecycle.c): the pending
 * calls; the functions of `atexit`, all of which it then drops; from here on Python is finalizing; it frees
 * the other threads' frames and states, the modules, the interpreter; the functions of Py_AtExit.
 */
#include "capture/python_end.h"

#include <string.h>

#include "capture/python_gate.h"

typedef void object; /* PyObject */

/* PyMethodDef, of the stable ABI. */
struct method {
    const char *name;
    object *(*function)(object *self, object *arguments);
    int flags;
    const char *documentation;
};
#define WITHOUT_ARGUMENTS 4 /* METH_NOARGS */

/* PyMemAllocatorEx. */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t bytes);
    void *(*calloc)(void *context, size_t count, size_t bytes);
    void *(*realloc)(void *context, void *start, size_t bytes);
    void (*free)(void *context, void *start);
};
#define DOMAIN_RAW 0 /* PYMEM_DOMAIN_RAW */

/* Of the public API; called by Python's own threads, which hold the GIL, but for Py_AddPendingCall, which
 * needs neither. X(result, name, parameters) */
#define FUNCTIONS(X)                                                                                         \
    X(int, Py_AddPendingCall, (int (*function)(void *), void *argument))                                     \
    X(int, Py_AtExit, (void (*function)(void)))                                                              \
    X(object *, PyErr_Occurred, (void))                                                                      \
    X(void, PyErr_Clear, (void))                                                                             \
    X(const char *, PyExceptionClass_Name, (object * type))                                                  \
    X(object *, PyImport_ImportModuleLevel,                                                                  \
      (const char *name, object *globals, object *locals, object *names, int level))                         \
    X(object *, PyObject_GetAttrString, (object * of, const char *name))                                     \
    X(object *, PyCapsule_New, (void *pointer, const char *name, void (*destroy)(object *)))                 \
    X(object *, PyCFunction_NewEx, (struct method * method, object * self, object * module))                 \
    X(object *, PyObject_CallFunctionObjArgs, (object * callable, ...))                                      \
    X(object *, Py_BuildValue, (const char *format, ...))                                                    \
    X(void, Py_DecRef, (object *))                                                                           \
    X(void *, PyInterpreterState_Main, (void))                                                               \
    X(void, PyMem_GetAllocator, (int domain, struct allocator *allocator))                                   \
    X(void, PyMem_SetAllocator, (int domain, struct allocator *allocator))

static struct {
#define AS_MEMBER(result, name, parameters) result(*name) parameters;
    FUNCTIONS(AS_MEMBER)
    void *(*this_interpreter)(void); /* PyInterpreterState_Get; 3.8: _PyInterpreterState_Get */
} api;

_Atomic(enum python_end_state) python_end_state;

static const struct python_runtime *asked; /* what `api` is of */
static bool end_is_told;                   /* Py_AtExit has our function */

static void set_state(enum python_end_state state)
{
    atomic_store_explicit(&python_end_state, state, memory_order_release);
}

static bool find_functions(const struct python_runtime *python)
{
    bool all = true;
#define FIND(result, name, parameters)                                                                       \
    *(void **)&api.name = elf_image_address(&python->image, #name);                                          \
    all = all && api.name != NULL;
    FUNCTIONS(FIND)
    *(void **)&api.this_interpreter = elf_image_address(&python->image, "PyInterpreterState_Get");
    if (api.this_interpreter == NULL)
        *(void **)&api.this_interpreter = elf_image_address(&python->image, "_PyInterpreterState_Get");
    return all && api.this_interpreter != NULL;
}

/*
 * A daemon thread that waits for the GIL when Python ends looks after a few milliseconds whether to give up,
 * and in 3.10 (take_gil in Python/ceval_gil.h) goes through the interpreter then, which is long freed if the
 * process lives on for that time; and that it does, as we write the reports. So it stays. Before, the thread
 * looks at no more than static memory; from 3.11 on, the interpreter is static memory.
 */
#define FREES_TOO_EARLY 10 /* 3.10 */

static struct {
    struct allocator python_s;
    const void *interpreter; /* NULL while nothing is kept */
} kept;

static void free_the_rest(void *context, void *start)
{
    if (start != kept.interpreter)
        kept.python_s.free(context, start);
}

/* Other threads can be allocating: only one word changes. */
static void keep_interpreter(void)
{
    if (asked->minor != FREES_TOO_EARLY || kept.interpreter != NULL)
        return;
    kept.interpreter = api.PyInterpreterState_Main();
    api.PyMem_GetAllocator(DOMAIN_RAW, &kept.python_s);
    struct allocator ours = kept.python_s;
    ours.free = free_the_rest;
    api.PyMem_SetAllocator(DOMAIN_RAW, &ours);
}

static bool runs_python_code(void)
{
    const void *thread_state = asked->this_thread_state();
    struct python_frame frame;
    uint64_t hash = 0;
    return thread_state != NULL && asked->walk(asked, thread_state, &frame, 1, &hash) != 0;
}

/* `atexit` drops its functions: as Python ends, of which no Python function is running any more, or because
 * the program told it to, as the children of `multiprocessing` do. */
static void end_begins(object *capsule)
{
    (void)capsule;
    if (atomic_load(&python_end_state) != PYTHON_END_EXPECTED)
        return;
    if (runs_python_code()) {
        set_state(PYTHON_END_UNKNOWN);
        return;
    }
    python_gate_close();
    keep_interpreter();
}

/* Python can be started again. */
static void has_ended(void)
{
    if (kept.interpreter != NULL)
        api.PyMem_SetAllocator(DOMAIN_RAW, &kept.python_s);
    kept.interpreter = NULL;
    end_is_told = false;
    python_gate_open();
    set_state(PYTHON_END_UNKNOWN);
}

static object *do_nothing(object *self, object *arguments)
{
    (void)self;
    (void)arguments;
    return api.Py_BuildValue("");
}

static void drop(object *held)
{
    if (held != NULL)
        api.Py_DecRef(held);
}

static bool register_function(void)
{
    static struct method method = {"gpumemtrace", do_nothing, WITHOUT_ARGUMENTS, NULL};
    object *module = api.PyImport_ImportModuleLevel("atexit", NULL, NULL, NULL, 0);
    object *add = module == NULL ? NULL : api.PyObject_GetAttrString(module, "register");
    object *capsule = add == NULL ? NULL : api.PyCapsule_New(&api, NULL, end_begins);
    object *function = capsule == NULL ? NULL : api.PyCFunction_NewEx(&method, capsule, NULL);
    object *result = function == NULL ? NULL : api.PyObject_CallFunctionObjArgs(add, function, NULL);
    bool done = result != NULL;
    drop(result);
    drop(function);
    drop(capsule);
    drop(add);
    drop(module);
    return done;
}

/* Not of a signal's handler of the program's, which can have come in between. */
static bool is_own_error(void)
{
    static const char *const own[] = {"ImportError", "ModuleNotFoundError", "AttributeError", "MemoryError"};
    const char *name = api.PyExceptionClass_Name(api.PyErr_Occurred());
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return false;
}

/* The pending call, in Python's main thread; -1 when it leaves an error that is the program's. */
static int expect_end(void *unused)
{
    (void)unused;
    if (atomic_load(&python_end_state) != PYTHON_END_ASKED)
        return 0;
    if (api.PyErr_Occurred() != NULL || api.this_interpreter() != api.PyInterpreterState_Main()) {
        set_state(PYTHON_END_UNKNOWN); /* a better moment will come */
        return 0;
    }
    end_is_told = end_is_told || api.Py_AtExit(has_ended) == 0;
    if (end_is_told && register_function()) {
        set_state(PYTHON_END_EXPECTED);
        return 0;
    }
    if (api.PyErr_Occurred() != NULL && !is_own_error()) {
        set_state(PYTHON_END_UNKNOWN);
        return -1;
    }
    api.PyErr_Clear();
    set_state(PYTHON_END_UNTOLD);
    return 0;
}

void python_end_ask(const struct python_runtime *python)
{
    enum python_end_state unknown = PYTHON_END_UNKNOWN;
    if (!atomic_compare_exchange_strong(&python_end_state, &unknown, PYTHON_END_ASKING))
        return;
    if (asked != python && !find_functions(python)) {
        set_state(PYTHON_END_UNTOLD);
        return;
    }
    asked = python;
    set_state(PYTHON_END_ASKED);
    if (api.Py_AddPendingCall(expect_end, NULL) != 0) /* it has too many of them */
        set_state(PYTHON_END_UNKNOWN);
}

void python_end_after_fork(void)
{
    enum python_end_state state = atomic_load(&python_end_state);
    if (state == PYTHON_END_ASKING || state == PYTHON_END_ASKED ||
        atomic_load(&python_gate_closed_by) != NULL)
        set_state(PYTHON_END_UNKNOWN);
    python_gate_open();
}

void python_end_forget(void)
{
    asked = NULL;
    end_is_told = false;
    set_state(PYTHON_END_UNKNOWN);
    python_gate_open();
}
