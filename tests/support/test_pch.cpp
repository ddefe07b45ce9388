// The translation unit that the precompiled header of the tests belongs to.
