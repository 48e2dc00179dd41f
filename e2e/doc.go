// Package e2e tests what users see: it builds the ephpm binary once, starts it
// with a configuration file as a user would, and talks to it with clients that
// are not ours (net/http, coder/websocket, curl, Chromium). It imports nothing
// of this module.
//
// A test starts a server and asks it:
//
//	a := startApp(t, appOptions{Root: "testdata/echo"})
//	resp, body := a.get("/hello.php")
//	s := a.dial("/", nil)
//	s.send("hi")
//	got := s.recv()
//
// The tests of sockets say in PHP what an event does (startPlay), and see every
// frame where a library would hide it (dialWire):
//
//	a := startPlay(t, "[server.websocket]\nsend_queue = 1\n")
//	s := a.join("ephpm_ws_subscribe('lobby');", "")
//	s.wantRun("return ephpm_ws_count('lobby');", "1")
//
// and of connections without one:
//
//	a := startPlay(t, sseOn)
//	s := a.listen("ephpm_ws_subscribe('lobby');")
//	s.wantRun("return ephpm_ws_count('lobby');", "1")
//	p := a.poll("")
//
// Every helper fails the test by itself, every wait has a limit, and everything
// that was started is gone when the test ends: a server that leaves a process
// behind, panics or has a data race fails the test that started it.
//
// What PHP promises a script under a web server is held by these; what belongs to
// one request is asked a hundred times at once (hundred):
//
//	superglobals_test, runtime_requests_test   what a request is to a script
//	paths_test, php_contract_test, rules_test  which script, and PATH_INFO, rewrites
//	php_sites_test, sites_test                 all that differs from site to site
//	responses_test, runtime_finish_test        status, headers, early hints, finish
//	streaming_test, runtime_abort_test         flush, clients that leave or stop reading
//	scripts_test, php_behaviour_test           order of a request's end, fibers, buffers
//	uploads_test, runtime_bodies_test          bodies, files, limits, slow senders
//	runtime_env_test, php_runtime_env_test     environment, ini, preload
//	opcache_test                               the cache of scripts: shared, looked at anew, emptied under load
//	sessions_test, kv_php_test                 what outlives a request
//	limits_test, runtime_stuck_test            time, soft stop, locks, backtraces
//	php_memory_test                            memory_limit
//	crash_test, ws_kills_test                  workers that die
//	pool_test, stop_test, reload_test          who waits, for whom, and for how long
//	logs_test, accesslog*_test, metrics_test,
//	admin_test                                 what an operator sees
//	php_command_test                           PHP on the command line
//
// What the contract of WebSockets promises is held by these. Upgrades that are
// refused: our answer, the line in the log and the counter, in the order in which
// they are decided:
//
//	the client is over a limit of all requests   TestUpgradesOverTheLimitsOfTheirClient
//	malformed path or host, host not trusted, hidden path, a rule
//	                                             TestUpgradesRefusedAsRequests, TestUpgradesThatRulesRefuse
//	it has to come by TLS                        TestUpgradesAreSentToTLS
//	an endpoint of the server itself             TestUpgradeOfWhatIsNoSocket
//	what is no upgrade                           TestWhatCountsAsAnUpgrade, TestSocketsOff
//	the host name is no site's                   TestSocketsOfOneSiteCannotBeReachedFromAnother
//	no script                                    TestUpgradeWithoutEntrypointIs404
//	malformed handshake, its body                TestMalformedHandshakeIs400, TestUpgradeBodyIsBounded
//	a connection that cannot be taken over       server: TestUpgradeOfWhatCannotBeTakenOver
//	origin                                       TestAllowedOrigins, TestSameOriginIsForTheScript
//	the rate of the site                         TestUpgradesKeepTheLimitsOfRequests
//	full: server, site, address                  TestServerCapIs503, TestSiteCapIs503, TestAddressCapIs503,
//	                                             TestSingleSiteHasNoCapOfItsOwn, TestSocketLimitsOfOneSite
//	the server stops                             TestConnectWhileTheServerStops
//	no worker for connect                        TestConnectWithoutAWorkerIs503, TestConnectWithoutAWorkerUnderShedding
//	connect runs too long, dies, breaks          TestConnectOverTheTimeLimitIs504, TestConnectWhoseWorkerDiesIs502,
//	                                             TestFatalErrorsThatAreDisplayed, TestSyntaxErrorInTheScript
//	connect says no, or yes                      TestConnectRefusesVerbatim, TestConnectAccepts, TestEvery2xxAccepts,
//	                                             TestHandshakeAnswer, TestSubprotocol
//	over HTTP/2 and HTTP/3                       TestRefusalsOverHTTP2AndHTTP3, TestProtocolsThatHTTP2Refuses,
//	                                             TestSocketsThatHTTP3Refuses
//
// Ends of sockets: what the client sees, what disconnect is told, what is counted:
//
//	the script's code, behind what was queued    TestScriptClosesWithAnyLegalCode, TestSendThenCloseKeepsTheOrder,
//	                                             TestCloseDoesNotWaitForTheHandler
//	the client's code is echoed, TCP ends        TestCloseIsEchoed, TestDisconnectHoldsNoSocket
//	1001 idle, stop                              TestIdleClientIsClosed, TestServerPings, TestStopTellsEverySocket
//	1002, 1007, 1009                             TestMalformedFrames, TestMessageAndFrameLimits, TestProtocol, TestCompressionRules
//	1008                                         TestMessageRateIs1008
//	1011                                         TestMessageOverTheTimeLimit, TestTimeLimitHoldsForEveryHandler
//	1013                                         TestSlowReaderIsClosedWith1013, TestConnectQueuesAtMostTheQueue,
//	                                             TestMessageThatCannotRunInTime
//	a client that takes nothing, or is silent    TestBlockedWriteCutsTheSocket, TestCloseDoesNotNeedTheClient
//	a broken or dead handler closes nothing      TestBrokenMessageKeepsTheSocket, TestKilledWorkersCloseNoSocket
//	code, reason, cause, duration                TestDisconnectKnowsWhy, TestDisconnectKnowsHowLongItWas
//	streams of HTTP/2 and HTTP/3                 TestStreamsEndWithTheirSocket
//
// What others get wrong:
//
//	aborted and refused connects leak            TestClientsThatLeaveDuringConnectLeakNothing, TestConnectsThatTimeOutLeakNothing,
//	                                             TestRefusedConnectsLeakNothing, TestClientsThatLeaveHalfWayLeaveNothing
//	a handler stops its socket's writer          TestWriterDoesNotWaitForTheHandler, TestServerPingsWhileAHandlerRuns
//	bursts to who reads are shed                 TestBurstOfOneHandlerArrives, TestSlowProgressIsProgress
//	a slow member hurts the others               TestSlowMemberDoesNotHurtTheOthers
//	events vanish, overlap, overtake             TestNoDisconnectIsLost, TestDisconnectWaitsForAWorker, TestEventsWaitInOrder,
//	                                             TestMessagesRunOneAfterTheOther, TestDisconnectRunsOnce
//	sockets and pages starve one another         TestPagesAndSocketsHaveTheirShares, TestIdleSocketsHoldNoWorker
//	a member that left stays in its channel      TestDisconnectComesAfterTheEnd, registry: TestSubscribeRacingRemoveLeavesNobody
//	sends and codes that lie                     TestFunctionsInAnEvent, TestFunctionsOnAPage, TestSendToOneThatClosesIsFalse
//	0 means two things                           TestNoMessageLimit, TestNoTimeLimit
//	queues are bounded in frames alone           TestQueueIsBoundedInBytes, TestLargeFrameThroughASmallQueue
//	abuse                                        TestAbuseCostsNobodyElse, TestCrowdThatIsDroppedAtOnce
//
// The rest of it:
//
//	functions and channels                       TestChannelNames, TestConnectionHolds64Channels, TestBroadcastReachesEveryMemberOnce
//	$_SERVER of events                           TestServerVariablesOfEvents
//	every series, from the start and counting    TestSocketMetricsAreThereFromTheStart, TestSocketMetricsCount,
//	                                             TestSocketGauges, TestLateEventsAreSeen
//	the life of a socket in the log              TestVerboseLogOfASocket, TestQuietLogOfASocket
//	compression, and once for all members        TestBroadcastToMembersOfAllKinds, TestLibraryClientWithCompression
//	every HTTP version                           TestProtocol, TestChromiumOpensSocketsOverHTTP2, TestSocketsOverHTTP3
//
// With the race detector (go test -race ./e2e) the server is built with it too.
package e2e
