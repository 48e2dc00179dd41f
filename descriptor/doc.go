// Package descriptor keeps connections that are mostly idle as bare descriptors:
// no goroutine, no buffer and no entry in Go's poller is held for one, as package net
// would.
//
//	d, ok := descriptor.Park(conn) // of package net, or TLS on a Parkable one
//	set.Add(d.FD, events, tag)     // an epoll set of the caller's, or Turns
//	set.Serve(func() bool { … })   // one goroutine for all of them
//
// Whoever serves the set owns the descriptors in it: nobody else closes one, so its
// number never means another connection. Read and Write never wait.
package descriptor
