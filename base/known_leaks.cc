#ifdef __SANITIZE_ADDRESS__
/// What LeakSanitizer is not to report, of libraries that keep memory until the process ends: Graphviz some of each layout, cuDNN some of each engine that it is asked about, and the compiler that it calls.
/// The sanitizer knows one such function in a process, so all stands here; cmake/hone.cmake has every program link it.
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libgvc.so\n"
         "leak:libcgraph.so\n"
         "leak:libgvplugin\n"
         "leak:libcudnn\n"
         "leak:libnvrtc\n";
}
extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
#endif
