// What a precompiled header is compiled for.
