package phpbridge

import "context"

// A Host answers the calls that PHP makes to the front (ephpm_ws_send and the
// like). HostCall runs on the goroutine of Serve while the worker waits, so it
// should be quick; it must end when ctx does. It answers by one of the Return
// methods or Throw; with none of them the function returns null.
type Host interface {
	HostCall(ctx context.Context, c *Call)
}
