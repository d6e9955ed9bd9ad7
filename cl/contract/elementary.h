/* elementary.h - all elementary functions. */
#ifndef LKS_CONTRACT_ELEMENTARY_H
#define LKS_CONTRACT_ELEMENTARY_H

#include "contract/num.h"
#include "contract/exp.h"
#include "contract/log.h"
#include "contract/sigmoid.h"
#include "contract/erf.h"
#include "contract/trig.h"

#endif
