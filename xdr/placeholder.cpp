int selvage_placeholder_cache();
