package phpbridge

// The include paths are those of Debian for PHP 8.2 to 8.5; one of them exists.
// libphp itself is only named to the linker, see weak.h: the front runs without
// it, and cgo never calls into it.

/*
#cgo CFLAGS: -O2 -g -fPIC -Wall -Wextra -Werror -D_GNU_SOURCE
#cgo CFLAGS: -isystem /usr/include/php/20220829 -isystem /usr/include/php/20220829/main -isystem /usr/include/php/20220829/TSRM -isystem /usr/include/php/20220829/Zend
#cgo CFLAGS: -isystem /usr/include/php/20230831 -isystem /usr/include/php/20230831/main -isystem /usr/include/php/20230831/TSRM -isystem /usr/include/php/20230831/Zend
#cgo CFLAGS: -isystem /usr/include/php/20240924 -isystem /usr/include/php/20240924/main -isystem /usr/include/php/20240924/TSRM -isystem /usr/include/php/20240924/Zend
#cgo CFLAGS: -isystem /usr/include/php/20250925 -isystem /usr/include/php/20250925/main -isystem /usr/include/php/20250925/TSRM -isystem /usr/include/php/20250925/Zend
#cgo LDFLAGS: -Wl,--as-needed -lphp
#include <php_version.h>
#include "wire.h"
*/
import "C"

import (
	"fmt"
	"strings"
)

// PHPVersion returns the version of PHP that this program was built for. The
// library that is loaded has the same major and minor number.
func PHPVersion() string { return C.PHP_VERSION }

// library is the file name of libphp, as compat.h has it.
func library() string {
	return fmt.Sprintf("libphp%d.%d.so", C.PHP_MAJOR_VERSION, C.PHP_MINOR_VERSION)
}

// libraryAdvice says what to do when it cannot be loaded.
func libraryAdvice() string {
	return "Debian: apt-get install " + strings.TrimSuffix(library(), ".so") + "-embed"
}

// What other files need of wire.h.
const (
	maxSlots  = C.EPHPM_SLOTS
	slotWords = C.EPHPM_SLOT_WORDS
	maxJobs   = C.EPHPM_JOBS
	jobWords  = C.EPHPM_JOB_WORDS

	requestSize  = C.EPHPM_REQUEST_SIZE
	responseSize = C.EPHPM_RESPONSE_SIZE
	answerSize   = C.EPHPM_ANSWER_SIZE
	bodyMin      = C.EPHPM_BODY_MIN

	stateFree   = C.EPHPM_JOB_FREE
	stateReady  = C.EPHPM_JOB_READY
	stateTaken  = C.EPHPM_JOB_TAKEN
	stateDone   = C.EPHPM_JOB_DONE
	stateKilled = C.EPHPM_JOB_KILLED
)
