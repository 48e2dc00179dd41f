<?php
$payload = str_repeat('x', (int) $_GET['size']);
$start = hrtime(true);
for ($i = 0; $i < (int) $_GET['count']; $i++) {
    ephpm_ws_broadcast('all', $payload);
}
echo hrtime(true) - $start;
