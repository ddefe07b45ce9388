#include "xdr/mount3.h"

#include "xdr/codec.h"

namespace selvage::xdr {

SELVAGE_XDR_INSTANTIATE(dirpath_args);
SELVAGE_XDR_INSTANTIATE(mountres3);
SELVAGE_XDR_INSTANTIATE(fhstatus);
SELVAGE_XDR_INSTANTIATE(mountlist);
SELVAGE_XDR_INSTANTIATE(exports);

}  // namespace selvage::xdr
