<?php echo "a page";
