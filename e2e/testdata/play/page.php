<?php

// A page that runs the code in its body and prints what that returned.
require __DIR__ . '/lib.php';

echo text(run(file_get_contents('php://input')));
