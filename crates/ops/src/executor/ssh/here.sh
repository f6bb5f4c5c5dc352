# Runs ssh on this side. $1 is the folder with the pipes; the other arguments are ssh
# and its arguments. ssh runs in the background, and this shell exits when haft reports
# that the command has ended: ssh may have to stay for processes the command left.
exec 3<"$1/in" 4>"$1/control" 5<"$1/done" || exit 1
if [ -p "$1/error" ]; then
    exec 6<"$1/error"
    cat <&6 >&2 3<&- 4>&- 5<&- 6<&- &
    exec 6<&-
fi
shift
if command -v "$1" >/dev/null; then
    echo O >&4
    "$@" <&3 2>&4 3<&- 4>&- 5<&- &
else
    echo N >&4
fi
exec 3<&- 4>&-
IFS= read -r word <&5
case $word in
    left) exit 0 ;;
    lost*) wait; printf '%s\n' "${word#lost }" >&2 ;;
    *) wait ;;
esac
