// The parts of the C++ library that Verilator's programs need, in one file: headers are read once instead of 70 times, and
// large unused parts (regular expressions, conversions, file systems) are omitted. The sources are LLVM's libc++ and
// libc++abi in the package ziglang; see clang.py.

#define NDEBUG
#define HAVE___CXA_THREAD_ATEXIT_IMPL
#define LIBCXX_BUILDING_LIBCXXABI
#define _LIBCPP_BUILDING_LIBRARY
#define _LIBCXXABI_BUILDING_LIBRARY

// Two files define functions again for the ABI of older programs; disabled here.
#define _LIBCPP_AVAILABILITY_MINIMUM_HEADER_VERSION 9

#include "libcxx/src/algorithm.cpp"
#include "libcxx/src/call_once.cpp"
#include "libcxx/src/chrono.cpp"
#include "libcxx/src/condition_variable.cpp"
#include "libcxx/src/error_category.cpp"
#include "libcxx/src/exception.cpp"
#include "libcxx/src/fstream.cpp"
#include "libcxx/src/functional.cpp"
#include "libcxx/src/future.cpp"
#include "libcxx/src/hash.cpp"
#include "libcxx/src/ios.cpp"
#include "libcxx/src/ios.instantiations.cpp"
#include "libcxx/src/iostream.cpp"
#include "libcxx/src/locale.cpp"
#include "libcxx/src/memory.cpp"
#include "libcxx/src/mutex.cpp"
#include "libcxx/src/new.cpp"
#include "libcxx/src/new_handler.cpp"
#include "libcxx/src/new_helpers.cpp"
#include "libcxx/src/ostream.cpp"
#include "libcxx/src/shared_mutex.cpp"
#include "libcxx/src/stdexcept.cpp"
#include "libcxx/src/string.cpp"
#include "libcxx/src/system_error.cpp"
#include "libcxx/src/thread.cpp"
#include "libcxx/src/typeinfo.cpp"
#include "libcxx/src/vector.cpp"
#include "libcxx/src/verbose_abort.cpp"
#include "libcxxabi/src/abort_message.cpp"
#include "libcxxabi/src/cxa_aux_runtime.cpp"
#include "libcxxabi/src/cxa_default_handlers.cpp"
#include "libcxxabi/src/cxa_demangle.cpp"
#include "libcxxabi/src/cxa_exception.cpp"
#include "libcxxabi/src/cxa_exception_storage.cpp"
#include "libcxxabi/src/cxa_guard.cpp"
#include "libcxxabi/src/cxa_handlers.cpp"
#include "libcxxabi/src/cxa_personality.cpp"
#include "libcxxabi/src/cxa_thread_atexit.cpp"
#include "libcxxabi/src/cxa_vector.cpp"
#include "libcxxabi/src/cxa_virtual.cpp"
#include "libcxxabi/src/fallback_malloc.cpp"
#include "libcxxabi/src/private_typeinfo.cpp"
#include "libcxxabi/src/stdlib_exception.cpp"
#include "libcxxabi/src/stdlib_stdexcept.cpp"
#include "libcxxabi/src/stdlib_typeinfo.cpp"

// condition_variable_destructor.cpp would declare the class again.
_LIBCPP_BEGIN_NAMESPACE_STD
condition_variable::~condition_variable() { __libcpp_condvar_destroy(&__cv_); }
_LIBCPP_END_NAMESPACE_STD
